'use strict';
/* markdown.js: what a model writes, as elements.
 *
 * It goes through markdown-it, which takes no HTML, and what comes out through DOMPurify, which
 * lets few tags pass and still fewer attributes; only then does it meet the document. Pictures are
 * never fetched: they become their description and where they lie. Links lead to http, https and
 * mailto, in a new window that knows nothing of this one, and say where to.
 *
 * Writer is for an answer that comes piece by piece. Blocks that nothing can change any more are
 * put out once; only the last, unfinished one is made anew. A fence of code that is still open,
 * which may be long, grows by what is added to it. */

const MarkdownIt = require('markdown-it');
const purify = require('dompurify');
const { el } = require('./dom');
const code = require('./code');
const { Reader, readable } = require('./readable');

const TAGS = ['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'strong', 'em', 's', 'code',
              'pre', 'blockquote', 'ul', 'ol', 'li', 'a', 'table', 'thead', 'tbody', 'tr', 'th',
              'td'];
const RULES = { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ['href', 'start', 'align', 'lang', 'title'],
                ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true };
/* A block longer than this is shown as it is: no reader needs it formatted. */
const LONGEST = 200000;
/* Nor what stands in a paragraph longer than this, or in columns behind so many: both take times
 * that grow faster than they do. */
const LONGEST_LINE = 20000, MOST_COLUMNS = 100;

const md = new MarkdownIt({ html: false, linkify: true, typographer: false });
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

function targetOf(href) {
    let url;
    try {
        url = new URL(href);
    } catch {
        return null; /* what leads to this server is no business of a model */
    }
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null;
}

md.validateLink = (href) => targetOf(href) !== null;

const parseInline = md.inline.parse;
md.inline.parse = function (text, ...more) {
    if (text.length <= LONGEST_LINE) {
        parseInline.call(this, text, ...more);
        return;
    }
    const token = new md.core.State.prototype.Token('plain', '', 0);
    token.content = text;
    more[2].push(token);
};
md.renderer.rules.plain = (tokens, i) => md.utils.escapeHtml(tokens[i].content);

md.core.ruler.before('inline', 'columns', (state) => {
    let column = 0;
    state.tokens = state.tokens.filter((token) => {
        if (token.type === 'tr_open' || token.type === 'tr_close')
            column = 0;
        column += token.type === 'th_open' || token.type === 'td_open';
        return column <= MOST_COLUMNS;
    });
});

md.renderer.rules.image = (tokens, i, options, env, self) => {
    const escape = md.utils.escapeHtml;
    const alt = self.renderInlineAsText(tokens[i].children, options, env) || 'picture';
    const url = targetOf(tokens[i].attrGet('src'));
    return url ? `<a href="${escape(url.href)}">${escape(alt)}</a>` : escape(alt);
};

/* A style attribute would be against the page's policy. */
for (const cell of ['th_open', 'td_open'])
    md.renderer.rules[cell] = (tokens, i, options, env, self) => {
        const style = tokens[i].attrGet('style');
        if (style) {
            tokens[i].attrs = [['align', style.replace('text-align:', '')]];
        }
        return self.renderToken(tokens, i, options);
    };

md.renderer.rules.fence = (tokens, i) => {
    const info = tokens[i].info.trim().split(/\s+/)[0];
    const lang = /^[\w+#.-]{1,24}$/.test(info) ? ` lang="${info}"` : '';
    return `<pre><code${lang}>${md.utils.escapeHtml(tokens[i].content)}</code></pre>`;
};

purify.addHook('afterSanitizeAttributes', (node) => {
    if (node.nodeName !== 'A')
        return;
    const url = targetOf(node.getAttribute('href') || '');
    if (!url) {
        node.removeAttribute('href');
        return;
    }
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer nofollow');
    node.setAttribute('title', url.href);
});

/* Whether a link's text is where it leads, and nothing else. */
function saysWhere(text, url, where) {
    const said = text.trim();
    if (said === where)
        return true;
    try {
        return new URL(said).host === url.host && url.host !== '';
    } catch {
        return false;
    }
}

/* Says where a link leads that does not say so itself, gives tables a place to scroll in. */
function dress(fragment) {
    for (const a of fragment.querySelectorAll('a[href]')) {
        const url = new URL(a.href);
        const where = url.protocol === 'mailto:' ? url.pathname : url.host;
        if (!saysWhere(a.textContent, url, where))
            a.after(el('span.where', ` (${where})`));
    }
    for (const table of fragment.querySelectorAll('table')) {
        const frame = el('div.table', { tabindex: '0', role: 'region', 'aria-label': 'Table' });
        table.replaceWith(frame);
        frame.append(table);
    }
    for (const pre of fragment.querySelectorAll('pre')) {
        const inner = pre.firstElementChild;
        const block = code.block(inner ? inner.getAttribute('lang') || '' : '');
        block.add(pre.textContent);
        block.end();
        pre.replaceWith(block.element);
    }
    return fragment;
}

function put(tokens, env) {
    return dress(purify.sanitize(md.renderer.render(tokens, md.options, env), RULES));
}

function plain(text) {
    return el('p.plain', text);
}

const clean = (text) => text.replace(/\r\n?/g, '\n');

/* All of a text at once. */
function whole(text) {
    const env = {};
    text = readable(clean(text));
    if (text.length > 10 * LONGEST)
        return plain(text);
    return put(md.parse(text, env), env);
}

/* The line where the last block of the document begins; -1: there is none. */
function lastBlock(tokens) {
    for (let i = tokens.length - 1; i >= 0; i--)
        if (tokens[i].level === 0 && tokens[i].nesting >= 0)
            return i;
    return -1;
}

function offsetOf(text, line) {
    let at = 0;
    for (; line > 0; line--)
        at = text.indexOf('\n', at) + 1;
    return at;
}

const countLines = (text) => text.split('\n').length - 1;

class Writer {
    /* finished is called with the text of each block that is put out for good. */
    constructor(host, finished) {
        this.host = host;
        this.finished = finished;
        this.tail = el('div.tail');
        this.host.append(this.tail);
        this.rest = '';
        this.env = {};
        this.fence = null;
        this.held = '';
        this.reader = new Reader();
    }

    add(text) {
        text = this.held + text;
        this.held = text.endsWith('\r') ? '\r' : '';
        this.rest += this.reader.add(clean(this.held ? text.slice(0, -1) : text));
    }

    /* Puts something out for good. */
    settle(node) {
        const said = node.textContent;
        this.host.insertBefore(node, this.tail);
        if (this.finished && said.trim())
            this.finished(said);
    }

    paint() {
        if (this.fence && !this.growFence())
            return;
        if (this.rest.length > LONGEST) {
            this.tail.replaceChildren(plain(this.rest));
            return;
        }
        const tokens = md.parse(this.rest, this.env);
        const last = lastBlock(tokens);
        if (last < 0) {
            this.tail.replaceChildren();
            return;
        }
        const line = tokens[last].map[0];
        const complete = line < countLines(this.rest);
        const open = complete && this.openFence(tokens[last]);
        if (last > 0 && complete)
            this.settle(put(tokens.slice(0, last), this.env));
        if (complete)
            this.rest = this.rest.slice(offsetOf(this.rest, line));
        if (open)
            this.beginFence(tokens[last], open);
        else
            this.tail.replaceChildren(put(complete ? tokens.slice(last) : tokens, this.env));
    }

    /* The mark that would close a fence which is not closed yet; null: no such fence. */
    openFence(token) {
        if (token.type !== 'fence')
            return null;
        const lines = this.rest.split('\n').slice(token.map[0]);
        const [, indent, mark] = /^( {0,3})(`{3,}|~{3,})/.exec(lines[0]) || [];
        if (!mark)
            return null;
        const closing = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}[ \\t]*$`);
        return lines.slice(1).some((l) => closing.test(l)) ? null
            : { mark: mark[0], indent: indent.length, closing };
    }

    beginFence(token, fence) {
        const info = token.info.trim().split(/\s+/)[0];
        fence.block = code.block(/^[\w+#.-]{1,24}$/.test(info) ? info : '');
        fence.begun = false;
        this.fence = fence;
        this.tail.replaceChildren(fence.block.element);
        this.rest = this.rest.slice(this.rest.indexOf('\n') + 1);
        this.growFence();
    }

    /* Adds what has come to the open fence; true: it is closed. */
    growFence() {
        const f = this.fence;
        let text = '';
        for (let end; (end = this.rest.indexOf('\n')) >= 0;) {
            const line = this.rest.slice(0, end);
            this.rest = this.rest.slice(end + 1);
            if (!f.begun && f.closing.test(line)) {
                f.block.add(text);
                this.endFence();
                return true;
            }
            text += (f.begun ? line : line.replace(new RegExp(`^ {0,${f.indent}}`), '')) + '\n';
            f.begun = false;
        }
        /* The beginning of a line may be that of the end. */
        const trimmed = this.rest.replace(/^ +/, '');
        if (this.rest && (f.begun || !(trimmed === '' || trimmed.startsWith(f.mark)))) {
            text += f.begun ? this.rest : this.rest.replace(new RegExp(`^ {0,${f.indent}}`), '');
            f.begun = true;
            this.rest = '';
        }
        f.block.add(text);
        return false;
    }

    endFence() {
        const { block } = this.fence;
        this.fence = null;
        block.end();
        this.settle(block.element);
    }

    /* All has come. */
    end() {
        this.rest += this.held ? '\n' : '';
        this.held = '';
        this.paint();
        if (this.fence) {
            if (this.rest && !this.fence.closing.test(this.rest))
                this.fence.block.add(this.rest);
            this.endFence();
            this.rest = '';
        }
        const left = document.createDocumentFragment();
        left.append(...this.tail.childNodes);
        if (left.firstChild)
            this.settle(left);
        this.tail.remove();
    }
}

module.exports = { whole, Writer };
