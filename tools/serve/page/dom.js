'use strict';
/* dom.js: elements without markup: nothing in this page is ever parsed from a string but what
 * markdown.js lets through. */

const SVG = 'http://www.w3.org/2000/svg';

/* Strokes of the icons, in a square of 20. */
const ICONS = {
    plus: 'M10 4v12M4 10h12',
    menu: 'M3.5 6h13M3.5 10h13M3.5 14h13',
    close: 'M5 5l10 10M15 5L5 15',
    send: 'M10 16V4.5M5 9.2l5-5 5 5',
    clip: 'M13.4 6.4l-5.1 5.1a1.6 1.6 0 0 0 2.3 2.3l5.3-5.3a3.2 3.2 0 0 0-4.6-4.6L5.9 9.3'
        + 'a4.8 4.8 0 0 0 6.8 6.8l4.1-4.1',
    copy: 'M7.5 7.5V4.2h8.3v8.3h-3.3M4.2 7.5h8.3v8.3H4.2z',
    check: 'M4.5 10.5l3.7 3.7 7.3-8',
    again: 'M15.8 10a5.8 5.8 0 1 1-1.9-4.3M15.9 3.2v3.3h-3.3',
    edit: 'M4 16l.7-3.2 8.6-8.6 2.5 2.5-8.6 8.6zM11.6 5.9l2.5 2.5',
    trash: 'M4.5 6h11M8 6V4.2h4V6M6 6l.6 10h6.8L14 6M8.6 8.8v4.4M11.4 8.8v4.4',
    more: 'M5 10h.01M10 10h.01M15 10h.01',
    left: 'M12 5l-5 5 5 5',
    right: 'M8 5l5 5-5 5',
    down: 'M10 4v12M5 11l5 5 5-5',
    sliders: 'M4 6.5h7M15 6.5h1M4 13.5h1M9 13.5h7M13 4.7v3.6M7 11.7v3.6',
    machine: 'M4 16V9M8 16V5M12 16v-5M16 16V7',
    sun: 'M10 6.7a3.3 3.3 0 1 0 0 6.6 3.3 3.3 0 0 0 0-6.6M10 2.6v1.2M10 16.2v1.2M2.6 10h1.2'
        + 'M16.2 10h1.2M4.8 4.8l.8.8M14.4 14.4l.8.8M4.8 15.2l.8-.8M14.4 5.6l.8-.8',
    moon: 'M16 11.6A6.4 6.4 0 0 1 8.4 4a6.4 6.4 0 1 0 7.6 7.6z',
    auto: 'M10 3.4a6.6 6.6 0 1 0 0 13.2 6.6 6.6 0 0 0 0-13.2z',
    save: 'M10 3.8v8.4M6.4 8.8L10 12.4l3.6-3.6M4 16h12',
    open: 'M10 12.4V4M6.4 7.4L10 3.8l3.6 3.6M4 16h12',
};

const SOLID = {
    auto: 'M10 3.4v13.2a6.6 6.6 0 0 0 0-13.2z',
    more: 'M5 9a1 1 0 1 0 0 2 1 1 0 0 0 0-2M10 9a1 1 0 1 0 0 2 1 1 0 0 0 0-2'
        + 'M15 9a1 1 0 1 0 0 2 1 1 0 0 0 0-2',
};

/* An element: `el('p.note', {title: 'x', onclick: f}, child, 'text')`. */
function el(what, given, ...children) {
    const [tag, ...classes] = what.split('.');
    const e = document.createElement(tag || 'div');
    if (classes.length)
        e.className = classes.join(' ');
    if (given && (typeof given !== 'object' || given instanceof Node)) {
        children.unshift(given);
        given = null;
    }
    for (const [name, value] of Object.entries(given || {})) {
        if (value === null || value === undefined || value === false)
            continue;
        if (name.startsWith('on'))
            e.addEventListener(name.slice(2), value);
        else if (value === true)
            e.setAttribute(name, '');
        else
            e.setAttribute(name, value);
    }
    e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
    return e;
}

function svg(tag, given) {
    const e = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(given))
        e.setAttribute(name, value);
    return e;
}

function icon(name) {
    const e = svg('svg', { viewBox: '0 0 20 20', class: 'icon', 'aria-hidden': 'true' });
    e.append(svg('path', { d: ICONS[name] }));
    if (SOLID[name])
        e.append(svg('path', { d: SOLID[name], class: 'solid' }));
    return e;
}

/* A button of an icon; its label is what it is called, and its tip. */
function iconButton(name, label, onclick, more) {
    return el('button.quiet', { type: 'button', title: label, 'aria-label': label, onclick,
                                ...more }, icon(name));
}

const find = (id) => document.getElementById(id);

/* Says a line to who hears the page; what is said twice is said again. */
function say(text) {
    const to = find('said');
    to.textContent = to.textContent === text ? text + '\u00a0' : text;
}

/* A line at the bottom that goes by itself, with something to do about it. */
let toastTimer = 0;
function toast(text, label, action) {
    const to = find('toast');
    const gone = () => to.hidden = true;
    to.replaceChildren(el('span', text));
    if (label)
        to.append(el('button.link', { type: 'button', onclick: () => { gone(); action(); } },
                     label));
    to.hidden = false;
    clearTimeout(toastTimer);
    toastTimer = setTimeout(gone, label ? 9000 : 4000);
    say(text);
}

/* To the clipboard, also where the page came without TLS from another machine. */
async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const held = document.activeElement;
        const box = el('textarea.hidden', { 'aria-hidden': 'true' });
        box.value = text;
        document.body.append(box);
        box.select();
        const done = document.execCommand('copy');
        box.remove();
        if (held)
            held.focus();
        return done;
    }
}

/* A button that copies, and says for a while that it did. */
function copyButton(label, text) {
    const b = iconButton('copy', label, async () => {
        if (!await copy(text()))
            return;
        b.replaceChildren(icon('check'));
        say('Copied');
        setTimeout(() => b.replaceChildren(icon('copy')), 1600);
    });
    return b;
}

/* A file for who uses the page. */
function download(name, text) {
    const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    el('a', { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* What is pressed is not replaced before it is let go: the click would go nowhere. A release may
 * stay away, as where a menu opens, so that nobody waits for long. */
const PRESSED_MS = 1000;
let pressed = Promise.resolve(), free = () => {};

document.addEventListener('pointerdown', () => {
    pressed = new Promise((resolve) => {
        free = resolve;
        setTimeout(resolve, PRESSED_MS);
    });
}, true);
for (const end of ['pointerup', 'pointercancel'])
    document.addEventListener(end, () => setTimeout(free), true); /* behind its click */

const letGo = () => pressed;

const number = (n) => Math.round(n).toLocaleString('en');

module.exports = { el, svg, icon, iconButton, find, say, toast, copy, copyButton, download,
                   number, letGo };
