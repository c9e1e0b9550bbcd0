'use strict';
/* code.js: a block of code: its language, a button that copies it, and quiet colours once it is
 * whole. The colours know no language, only what most have in common: comments, texts, numbers and
 * some words. */

const { el, copyButton } = require('./dom');
const { straight } = require('./readable');

const LONGEST = 60000; /* coloured; the rest stays plain */

const WORDS = new Set(('abstract and as assert async await begin bool boolean break case catch '
    + 'char '
    + 'class const continue constexpr def default defer del delete do double elif else elsif end '
    + 'enum except export extends extern false final finally float fn for foreach from func '
    + 'function go goto if impl implements import in include inline instanceof int interface is '
    + 'lambda let local long loop match mod module mut namespace new nil none not null of or '
    + 'package pass private protected pub public raise readonly ref return select self short '
    + 'signed sizeof static static_assert string struct super switch template then this throw '
    + 'trait true try type typedef typeof union unless unsigned until use using var virtual void '
    + 'volatile when where while with yield None True False NULL nullptr uint8_t uint32_t size_t '
    + 'SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE JOIN ON GROUP BY ORDER '
    + 'LIMIT AND OR NOT NULL AS').split(' '));

const TEXTS = `"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`(?:[^\`\\\\]|\\\\[^])*\``;
const NUMBERS = '\\b(?:0x[0-9a-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\w*';
const COMMENTS = {
    slash: '//[^\\n]*|/\\*[^]*?(?:\\*/|$)',
    hash: '#[^\\n]*|"""[^]*?(?:"""|$)',
    dash: '--[^\\n]*',
    markup: '<!--[^]*?(?:-->|$)',
};
const FAMILIES = {
    hash: ['py', 'python', 'sh', 'bash', 'shell', 'zsh', 'console', 'ruby', 'rb', 'yaml', 'yml',
           'toml', 'r', 'perl', 'make', 'makefile', 'dockerfile', 'cmake', 'meson', 'ini'],
    dash: ['sql', 'lua', 'haskell', 'hs', 'ada', 'elm'],
    markup: ['html', 'xml', 'svg', 'vue'],
};
const PLAIN = ['text', 'txt', 'plain', 'plaintext', 'markdown', 'md', 'output', 'diff'];

const made = {};
function patternOf(lang) {
    const found = Object.keys(FAMILIES).find((f) => FAMILIES[f].includes(lang)) || 'slash';
    made[found] = made[found]
        || new RegExp(`(${COMMENTS[found]})|(${TEXTS})|(${NUMBERS})|([A-Za-z_]\\w*)`, 'g');
    return made[found];
}

function colour(text, lang) {
    const out = document.createDocumentFragment();
    let from = 0;
    for (const m of text.matchAll(patternOf(lang))) {
        const kind = m[1] ? 'c' : m[2] ? 's' : m[3] ? 'n' : WORDS.has(m[4]) ? 'k' : '';
        if (!kind)
            continue;
        out.append(text.slice(from, m.index), el('span.' + kind, m[0]));
        from = m.index + m[0].length;
    }
    out.append(text.slice(from));
    return out;
}

function block(lang) {
    const inner = el('code');
    const element = el(lang ? 'figure.code' : 'figure.code.bare',
        el('figcaption', el('span', lang), copyButton('Copy code', () => inner.textContent)),
        el('pre', { tabindex: '0', 'aria-label': lang ? `Code in ${lang}` : 'Code' }, inner));
    return {
        element,
        add(text) {
            if (text)
                inner.append(straight(text));
        },
        end() {
            const text = inner.textContent.replace(/\n$/, '');
            const name = lang.toLowerCase();
            if (text.length > LONGEST || !lang || PLAIN.includes(name))
                inner.replaceChildren(text);
            else
                inner.replaceChildren(colour(text, name));
        },
    };
}

module.exports = { block };
