'use strict';
/* thread.js: the messages of a conversation, and the one that is being written.
 *
 * A message that grows is painted a few times a second, and the more seldom the longer a painting
 * takes, so that the page stays quick whatever comes. The view follows the end as long as the
 * reader is there. */

const { el, icon, iconButton, copyButton, find, say, number } = require('./dom');
const markdown = require('./markdown');
const { Reader, readable } = require('./readable');
const talks = require('./talk');

const scroll = find('scroll'), thread = find('thread');
const LEAST_MS = 60, SHARE = 5; /* at most a fifth of the time is spent painting */
const AT_ONCE = 24, FILL_MS = 12;
const LONG = 2000, LONG_LINES = 24;
let acts = {}; /* what can be done to a message: again, goOn, edit, choose; and what is full */

/* Whether the end is to be seen. Heights change by themselves, as messages that were only guessed
 * come into view; only a scroll at an unchanged height is the reader's. */
let follows = true, height = 0;

const atEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60;

function toEnd() {
    follows = true;
    scroll.scrollTop = height = scroll.scrollHeight;
}

function toPlace(top) {
    follows = false;
    scroll.scrollTop = top;
}

/* Shows something else, with the reader where the reader was. */
function inPlace(change) {
    const top = follows ? null : scroll.scrollTop;
    change();
    if (top !== null)
        toPlace(top);
}

function followEnd(change) {
    change();
    if (follows)
        toEnd();
}

/* --- under a message --- */

function versions(talk, message) {
    const all = talks.siblings(talk, message), at = all.indexOf(message);
    if (all.length < 2)
        return [];
    const go = (step, label, name) => iconButton(name, label,
        () => acts.choose(all[at + step]), { disabled: !all[at + step] });
    return [go(-1, 'Earlier version', 'left'),
            el('span.which', { 'aria-label': `Version ${at + 1} of ${all.length}` },
               `${at + 1}/${all.length}`),
            go(1, 'Later version', 'right')];
}

/* How fast it was written, from its first token on. */
function rateOf(stats) {
    const ms = (stats.total_ms || 0) - (stats.first_ms || 0);
    return ms > 0 && stats.tokens > 1 ? `${((stats.tokens - 1) / ms * 1000).toFixed(1)} tokens/s`
        : '';
}

function figures(stats) {
    if (!stats || !stats.tokens)
        return null;
    const list = [el('span', `${number(stats.tokens)} tokens`)];
    const rate = rateOf(stats);
    if (rate)
        list.push(el('span', { title: 'While it was written' }, rate));
    if (stats.cached)
        list.push(el('span', { title: 'Tokens of the prompt that were not computed again' },
                     `${number(stats.cached)} of ${number(stats.prompt)} reused`));
    return el('span.figures', ...list);
}

function answerActs(talk, message) {
    const copies = message.text ? copyButton('Copy answer', () => message.text) : null;
    return el('div.acts', copies,
        iconButton('again', 'Answer again', () => acts.again(message)),
        ...versions(talk, message), figures(message.stats));
}

/* --- thinking --- */

function seconds(ms) {
    return ms < 1000 ? 'a moment' : ms < 60000 ? `${Math.round(ms / 1000)} s`
        : `${Math.floor(ms / 60000)} min ${Math.round(ms % 60000 / 1000)} s`;
}

function thinkingBox() {
    const label = el('span', 'Thinking'), inner = el('div.thought', { tabindex: '0' });
    const box = el('details.thinking', el('summary', icon('right'), label), inner);
    const reader = new Reader();
    let shown = 0;
    return {
        box,
        add(text) {
            inner.append(reader.add(text.slice(shown)));
            shown = text.length;
        },
        done(ms) {
            label.textContent = ms ? `Thought for ${seconds(ms)}` : 'Thoughts';
        },
    };
}

/* --- messages --- */

/* A message so long that it would hide the answers is folded, until it is asked for. */
function foldButton(text, message) {
    if (message.text.length < LONG && message.text.split('\n').length < LONG_LINES)
        return null;
    text.classList.add('folded');
    const button = el('button.link.fold', { type: 'button', 'aria-expanded': 'false',
        onclick: () => {
            toPlace(scroll.scrollTop); /* the end is not looked for now */
            const folded = text.classList.toggle('folded');
            if (folded)
                text.scrollIntoView({ block: 'nearest' });
            button.textContent = folded ? 'Show all' : 'Show less';
            button.setAttribute('aria-expanded', String(!folded));
        } }, 'Show all');
    return button;
}

function userMessage(talk, message) {
    const text = el('div.text', readable(message.text));
    const row = el('div.acts', foldButton(text, message),
        copyButton('Copy message', () => message.text),
        iconButton('edit', 'Edit and ask again', () => edit(element, talk, message)),
        ...versions(talk, message));
    const element = el('article.message.user.done', { 'aria-label': 'You', 'data-id': message.id },
                       text, row);
    return element;
}

function edit(element, talk, message) {
    const box = el('textarea', { 'aria-label': 'Edit your message' });
    const back = () => element.replaceWith(userMessage(talk, message));
    const ask = () => {
        if (box.value.trim())
            acts.edit(message, box.value.trim());
    };
    box.value = message.text;
    const form = el('div.edit', box, el('div',
        el('button.plainbutton', { type: 'button', onclick: back }, 'Cancel'),
        el('button.firm', { type: 'button', onclick: ask }, 'Ask again')));
    box.addEventListener('keydown', (e) => {
        if (e.key === 'Escape') {
            e.stopPropagation();
            back();
            find('input').focus();
        } else if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            ask();
        }
    });
    element.classList.remove('done');
    element.replaceChildren(form);
    box.style.height = Math.min(box.scrollHeight + 2, innerHeight / 2) + 'px';
    box.focus();
}

/* How an answer ended, and how it may go on: the last one of those shown, from where it is. */
function noteOf(talk, message) {
    const begun = message.text || message.thinking;
    const link = (label, act) => el('button.link', { type: 'button', onclick: act }, label);
    const more = begun && talk.leaf === message.id && !acts.isFull(message)
        ? link('Continue', () => acts.goOn(message)) : '';
    const note = (text) => el('p.note', text, ' ', more);
    if (message.state === 'stopped')
        return note('Stopped here.');
    if (message.state === 'elsewhere')
        return el('p.note', 'Another window of this browser writes it.');
    if (message.state === 'length')
        return note(acts.isFull(message) ? 'The context is full: begin a new conversation, or edit'
            + ' an earlier message.' : 'Cut off by “max tokens” in the settings.');
    if (message.state !== 'failed')
        return null;
    return el('div.error', { role: 'alert' }, el('span', message.error || 'It failed.'),
              more || link('Try again', () => acts.again(message, true)));
}

function answerElement(message) {
    return el('article.message.assistant', { 'aria-label': 'Answer', 'data-id': message.id });
}

/* What is left to be formatted of a long conversation, the youngest last: it is done in pieces, so
 * that the end can be read at once. */
let left = [], filling = 0;

function fill() {
    const begun = performance.now();
    while (left.length && performance.now() - begun < FILL_MS)
        left.pop()();
    filling = left.length ? setTimeout(fill) : 0;
}

function answerMessage(talk, message, atOnce) {
    const element = answerElement(message);
    element.classList.add('done');
    if (message.thinking) {
        const t = thinkingBox();
        t.add(message.thinking);
        t.done(message.stats && message.stats.thought_ms);
        element.append(t.box);
    }
    const prose = el('div.prose'), put = () => prose.append(markdown.whole(message.text));
    if (atOnce)
        put();
    else
        left.push(put);
    element.append(prose);
    finish(element, talk, message);
    return element;
}

function finish(element, talk, message) {
    const note = noteOf(talk, message);
    if (note)
        element.append(note);
    element.append(answerActs(talk, message));
}

/* --- the one that is being written --- */

function progressBox() {
    const line = el('span', 'Reading'), track = el('div.track.unknown', { 'aria-hidden': 'true' });
    const kept = el('i.kept'), done = el('i');
    track.append(done, kept);
    return {
        box: el('div.reading', line, track),
        set({ total, processed, cache }) {
            const part = (n) => Math.min(100, 100 * n / Math.max(1, total)) + '%';
            track.classList.remove('unknown');
            done.style.width = part(processed);
            kept.style.width = part(cache || 0);
            line.textContent = `Reading ${number(processed)} of ${number(total)} tokens`
                + (cache ? `, ${number(cache)} known already` : '');
        },
    };
}

class Live {
    constructor(talk, message) {
        this.talk = talk;
        this.message = message;
        this.element = answerElement(message);
        this.element.setAttribute('aria-busy', 'true');
        this.wait = el('div.dots', el('i'), el('i'), el('i'));
        this.prose = el('div.prose');
        this.element.append(this.wait, this.prose);
        this.writer = new markdown.Writer(this.prose, (text) => say(text.slice(0, 1000)));
        this.thinking = this.progress = null;
        this.taken = 0;
        this.delay = LEAST_MS;
        this.timer = 0;
        this.had = message.text.length + message.thinking.length;
        this.paint();
        if (this.had)
            this.element.append(this.wait);
    }

    /* Something has changed; it is painted soon. */
    changed() {
        if (!this.timer)
            this.timer = setTimeout(() => this.paint(), this.delay);
    }

    reading(progress) {
        followEnd(() => {
            if (!this.progress) {
                this.progress = progressBox();
                this.wait.replaceWith(this.progress.box);
                this.wait = this.progress.box;
            }
            this.progress.set(progress);
        });
    }

    paint() {
        this.timer = 0;
        const begun = performance.now();
        followEnd(() => this.put());
        this.delay = Math.max(LEAST_MS, SHARE * (performance.now() - begun));
    }

    put() {
        const m = this.message;
        if (m.text.length + m.thinking.length > this.had)
            this.wait.remove();
        if (m.thinking) {
            if (!this.thinking) {
                this.thinking = thinkingBox();
                this.element.insertBefore(this.thinking.box, this.prose);
            }
            this.thinking.add(m.thinking);
            if (m.text)
                this.thinking.done(m.stats && m.stats.thought_ms);
        }
        if (m.text.length > this.taken) {
            this.writer.add(m.text.slice(this.taken));
            this.taken = m.text.length;
            this.writer.paint();
        }
    }

    end() {
        clearTimeout(this.timer);
        followEnd(() => {
            this.put();
            this.writer.end();
            this.wait.remove();
            if (this.thinking)
                this.thinking.done(this.message.stats && this.message.stats.thought_ms);
            this.element.removeAttribute('aria-busy');
            finish(this.element, this.talk, this.message);
        });
    }
}

/* --- the whole --- */

function show(talk, live, empty) {
    const list = talks.path(talk);
    clearTimeout(filling);
    left = [];
    thread.replaceChildren(...list.map((m, i) => live && live.message === m ? live.element
        : m.role === 'user' ? userMessage(talk, m)
        : answerMessage(talk, m, i + AT_ONCE >= list.length)));
    if (left.length)
        filling = setTimeout(fill);
    if (!list.length)
        thread.append(empty());
    toEnd();
}

function editLast(talk) {
    const last = talks.path(talk).filter((m) => m.role === 'user').pop();
    const element = last && thread.querySelector(`[data-id="${last.id}"]`);
    if (element)
        edit(element, talk, last);
}

function setUp(given) {
    acts = given;
    const latest = find('latest');
    latest.append(icon('down'));
    latest.setAttribute('aria-label', 'To the end');
    latest.title = 'To the end';
    latest.addEventListener('click', toEnd);
    const look = () => {
        latest.hidden = follows || atEnd() || Boolean(thread.querySelector('.empty'));
        find('top').classList.toggle('under', scroll.scrollTop > 4);
    };
    scroll.addEventListener('scroll', () => {
        if (scroll.scrollHeight === height)
            follows = atEnd();
        height = scroll.scrollHeight;
        look();
    }, { passive: true });
    const resized = new ResizeObserver(() => {
        if (follows)
            toEnd();
        look();
    });
    resized.observe(thread);
    resized.observe(scroll);
}

module.exports = { setUp, show, Live, editLast, toEnd, toPlace, inPlace, rateOf };
