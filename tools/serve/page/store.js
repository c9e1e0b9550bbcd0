'use strict';
/* store.js: conversations in the browser's IndexedDB: their heads, for the list, and their bodies,
 * read when one is opened. Without a database they live as long as the page. */

const talks = require('./talk');

const HEADS = 'heads', BODIES = 'bodies';
let base = null;
const memory = new Map();
/* Other windows of this page hear of what changes. */
const others = typeof BroadcastChannel === 'function' ? new BroadcastChannel('tern') : null;

function open() {
    return new Promise((resolve) => {
        let asked;
        try {
            asked = indexedDB.open('tern', 1);
        } catch {
            resolve(false);
            return;
        }
        asked.onupgradeneeded = () => {
            asked.result.createObjectStore(HEADS, { keyPath: 'id' });
            asked.result.createObjectStore(BODIES, { keyPath: 'id' });
        };
        asked.onsuccess = () => {
            base = asked.result;
            resolve(true);
        };
        asked.onerror = asked.onblocked = () => resolve(false);
    });
}

function done(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

const headOf = ({ id, title, created, updated, stamp }) => ({ id, title, created, updated, stamp });

async function heads() {
    const list = base ? await done(base.transaction(HEADS).objectStore(HEADS).getAll())
        : [...memory.values()].map(headOf);
    return list.sort((a, b) => b.updated - a.updated);
}

async function load(id) {
    const body = base ? await done(base.transaction(BODIES).objectStore(BODIES).get(id))
        : memory.get(id);
    const talk = talks.fromFile(body);
    if (talk)
        talk.stamp = body.stamp || null;
    return talk;
}

function change(act) {
    return new Promise((resolve, reject) => {
        const t = base.transaction([HEADS, BODIES], 'readwrite');
        act(t.objectStore(HEADS), t.objectStore(BODIES));
        t.oncomplete = resolve;
        t.onerror = t.onabort = () => reject(t.error);
    });
}

/* Puts a conversation; what another window has put since it was read is joined to it first. The
 * stamp, another one each time, tells whether there is such, within the one transaction. */
async function save(talk) {
    if (!base) {
        memory.set(talk.id, structuredClone(talks.toFile(talk)));
        return;
    }
    await change((h, b) => {
        const put = (found) => {
            if (found)
                talks.join(talk, found);
            talk.stamp = talks.newId();
            h.put(headOf(talk));
            b.put({ ...talks.toFile(talk), stamp: talk.stamp });
            talks.kept(talk);
        };
        h.get(talk.id).onsuccess = (e) => {
            const head = e.target.result;
            if (!head || (head.stamp || null) === talk.stamp)
                put(null);
            else
                b.get(talk.id).onsuccess = (e) => put(talks.fromFile(e.target.result));
        };
    });
    const running = [...talk.messages.values()].find((m) => m.state === 'running');
    if (others)
        others.postMessage({ changed: talk.id, running: running ? running.id : null });
}

async function remove(id) {
    memory.delete(id);
    if (base)
        await change((h, b) => {
            h.delete(id);
            b.delete(id);
        });
    if (others)
        others.postMessage({ changed: id });
}

function onOthers(hear) {
    if (others)
        others.onmessage = (e) => hear(e.data.changed, e.data.running);
}

/* --- what is small --- */

function note(name, value) {
    try {
        if (value === null)
            localStorage.removeItem('tern.' + name);
        else
            localStorage.setItem('tern.' + name, JSON.stringify(value));
    } catch {
        /* Then it holds until the page is closed. */
    }
}

/* What is noted, if it is of the kind that is wanted: it may be another version's. */
function noted(name, otherwise) {
    try {
        const value = JSON.parse(localStorage.getItem('tern.' + name));
        return typeof value === typeof otherwise && value !== null && !Array.isArray(value)
            ? value : otherwise;
    } catch {
        return otherwise;
    }
}

module.exports = { open, heads, load, save, remove, onOthers, note, noted };
