'use strict';
/* talk.js: a conversation: a tree of messages, of which one path is shown.
 *
 * Who edits a message or asks for another answer gets a sibling of what was there; nothing that was
 * said is lost. The path shown is the one that leads to `leaf`. A conversation that comes from a
 * file is checked field by field: it may be anybody's.
 *
 * Another window may have kept more of the same conversation meanwhile. So each knows what it did
 * itself since it last kept it: the messages that are its `own`, those it took away (`gone`), and
 * the title and system prompt as they `were`. What is kept is then the two trees in one. */

const LIMITS = { title: 200, text: 4 << 20, messages: 20000 };

/* Not randomUUID: that is only there for pages that came by TLS or from this machine. */
function newId() {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)),
                      (b) => b.toString(16).padStart(2, '0')).join('');
}

function create(system) {
    const now = Date.now();
    return begun({ id: newId(), title: '', system: system || '', created: now, updated: now,
                   leaf: null, messages: new Map() });
}

function begun(talk) {
    return Object.assign(talk, { own: new Set(), gone: new Set(), stamp: null, joined: false,
                                 was: { title: talk.title, system: talk.system } });
}

/* A message behind `parent` (null: the first), which becomes the leaf. */
function add(talk, parent, role, text) {
    const m = { id: newId(), parent, role, text, thinking: '', created: Date.now(), state: 'done',
                error: '', stats: null };
    talk.messages.set(m.id, m);
    talk.own.add(m.id);
    talk.leaf = m.id;
    talk.updated = m.created;
    if (!talk.title && role === 'user')
        talk.title = titleOf(text);
    return m;
}

function titleOf(text) {
    const line = text.trim().split('\n')[0].replace(/\s+/g, ' ').replace(/:$/, '');
    return line.length > 60 ? line.slice(0, 57).replace(/\s+\S*$/, '') + '…' : line;
}

/* The messages from the first to `leaf`. */
function path(talk, leaf = talk.leaf) {
    const list = [];
    for (let m = talk.messages.get(leaf); m && list.length <= talk.messages.size;
         m = talk.messages.get(m.parent))
        list.unshift(m);
    return list;
}

function siblings(talk, message) {
    return [...talk.messages.values()].filter((m) => m.parent === message.parent);
}

/* Shows the branch of a message: down to its youngest leaf. */
function choose(talk, message) {
    const last = new Map();
    for (const m of talk.messages.values())
        last.set(m.parent, m.id);
    let id = message.id;
    for (let n = 0; last.has(id) && n <= talk.messages.size; n++)
        id = last.get(id);
    talk.leaf = id;
}

function drop(talk, message) {
    talk.messages.delete(message.id);
    talk.gone.add(message.id);
    if (talk.leaf === message.id)
        talk.leaf = message.parent;
}

/* Takes over what another window kept. A message that somebody answered stays. */
function join(talk, found) {
    const all = new Map(), answered = new Set();
    for (const m of found.messages.values())
        all.set(m.id, talk.own.has(m.id) && talk.messages.get(m.id) || m);
    for (const m of talk.messages.values())
        if (!all.has(m.id))
            all.set(m.id, m);
    for (const m of all.values())
        answered.add(m.parent);
    for (const id of talk.gone)
        if (!answered.has(id))
            all.delete(id);
    for (const name of ['title', 'system'])
        if (talk[name] === talk.was[name])
            talk[name] = found[name];
    talk.messages = all;
    talk.updated = Math.max(talk.updated, found.updated);
    talk.joined = true;
}

/* It has been kept; what is under way goes on to be this window's. */
function kept(talk) {
    for (const id of talk.own)
        if (!talk.messages.has(id) || talk.messages.get(id).state !== 'running')
            talk.own.delete(id);
    talk.gone.clear();
    talk.was = { title: talk.title, system: talk.system };
}

/* --- files --- */

function toFile({ id, title, system, created, updated, leaf, messages }) {
    return { id, title, system, created, updated, leaf, messages: [...messages.values()] };
}

const text = (x, most) => typeof x === 'string' ? x.slice(0, most) : '';
const time = (x) => Number.isFinite(x) && x > 0 && x < 8e15 ? x : Date.now();
const id = (x) => typeof x === 'string' && /^[0-9a-f]{24}$/.test(x) ? x : null;

function statsFrom(x) {
    const stats = {};
    for (const name of ['tokens', 'prompt', 'cached', 'first_ms', 'total_ms', 'thought_ms'])
        if (x && Number.isFinite(x[name]) && x[name] >= 0)
            stats[name] = x[name];
    return Object.keys(stats).length ? stats : null;
}

/* A conversation from what stood in a file; null: it is none. What was under way has ended. */
function fromFile(x) {
    if (!x || typeof x !== 'object' || !Array.isArray(x.messages)
        || x.messages.length > LIMITS.messages)
        return null;
    const talk = begun({ id: id(x.id) || newId(), title: text(x.title, LIMITS.title),
                         system: text(x.system, LIMITS.text), created: time(x.created),
                         updated: time(x.updated), leaf: null, messages: new Map() });
    for (const m of x.messages) {
        if (!m || !id(m.id) || talk.messages.has(m.id) || !['user', 'assistant'].includes(m.role))
            return null;
        /* A parent stands before its children, so that no circle can be. */
        if (m.parent !== null && !talk.messages.has(m.parent))
            return null;
        talk.messages.set(m.id, {
            id: m.id, parent: m.parent, role: m.role, text: text(m.text, LIMITS.text),
            thinking: text(m.thinking, LIMITS.text), created: time(m.created),
            state: ['done', 'length', 'stopped', 'failed'].includes(m.state) ? m.state
                : m.role === 'user' ? 'done' : 'stopped',
            error: text(m.error, 2000), stats: statsFrom(m.stats) });
        talk.leaf = m.id;
    }
    if (talk.messages.has(x.leaf))
        talk.leaf = x.leaf;
    return talk;
}

module.exports = { create, add, drop, path, siblings, choose, join, kept, toFile, fromFile, titleOf,
                   newId };
