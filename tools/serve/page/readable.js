'use strict';
/* readable.js: text without what no writing has and browsers lay out for minutes, or in an order
 * that is not the one it is in: control characters become their pictures, and of many marks on one
 * letter some stay. In code, what turns its direction is spelled out. */

const MOST_MARKS = 24;
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/g;
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/* For a text that comes in pieces: a letter's marks may be in several. */
class Reader {
    constructor() {
        this.marks = 0; /* at the end of what has come */
    }

    add(text) {
        let n = this.marks;
        const out = text
            .replace(CONTROLS, (c) => String.fromCharCode(c === '\x7f' ? 0x2421
                : 0x2400 + c.charCodeAt(0)))
            .replace(/\p{M}+/gu, (run, at) => {
                const all = [...run];
                const before = at === 0 ? this.marks : 0;
                if (at + run.length === text.length)
                    n = before + all.length;
                return before + all.length <= MOST_MARKS ? run
                    : all.slice(0, Math.max(0, MOST_MARKS - before)).join('');
            });
        if (text && !/^\p{M}$/u.test([...text.slice(-2)].pop()))
            n = 0;
        this.marks = n;
        return out;
    }
}

const readable = (text) => new Reader().add(text);

const straight = (text) => text.replace(TURNS, (c) =>
    `[U+${c.charCodeAt(0).toString(16).toUpperCase()}]`);

module.exports = { Reader, readable, straight };
