'use strict';
/* sidebar.js: the list of conversations, by when they were last spoken in. */

const { el, icon, iconButton, find, say } = require('./dom');
const runs = require('./runs');

const list = find('list'), search = find('search'), menu = find('menu');
let heads = [], here = null, acts = {};

const DAY = 86400000;
function groupOf(time) {
    const midnight = new Date().setHours(0, 0, 0, 0);
    return time >= midnight ? 'Today' : time >= midnight - DAY ? 'Yesterday'
        : time >= midnight - 6 * DAY ? 'This week' : 'Earlier';
}

/* --- the menu of one --- */

function closeMenu() {
    menu.hidden = true;
    menu.replaceChildren();
}

function openMenu(button, head, row) {
    const entry = (name, label, act) => el('button', { type: 'button', role: 'menuitem',
        onclick: () => { closeMenu(); act(); } }, icon(name), label);
    menu.replaceChildren(entry('edit', 'Rename', () => rename(row, head)),
                         entry('save', 'Export', () => acts.save(head)),
                         entry('trash', 'Delete', () => acts.remove(head)));
    menu.hidden = false;
    const at = button.getBoundingClientRect();
    menu.style.left = Math.max(8, Math.min(at.left, innerWidth - menu.offsetWidth - 8)) + 'px';
    menu.style.top = Math.min(at.bottom + 4, innerHeight - menu.offsetHeight - 8) + 'px';
    menu.firstChild.focus();
    menu.onkeydown = (e) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
        if (e.key === 'Escape' || e.key === 'Tab') {
            e.preventDefault();
            e.stopPropagation();
            closeMenu();
            button.focus();
        } else if (step) {
            const entries = [...menu.children];
            const i = entries.indexOf(document.activeElement) + step + entries.length;
            entries[i % entries.length].focus();
            e.preventDefault();
        }
    };
}

function rename(row, head) {
    const box = el('input', { 'aria-label': 'Title', maxlength: '200', value: head.title });
    let over = false;
    const end = (keep) => {
        if (over)
            return;
        over = true;
        draw();
        if (keep && box.value.trim() && box.value.trim() !== head.title)
            acts.rename(head, box.value.trim());
    };
    box.addEventListener('keydown', (e) => {
        if (e.key === 'Enter' || e.key === 'Escape') {
            e.stopPropagation();
            end(e.key === 'Enter');
        }
    });
    box.addEventListener('blur', () => end(true));
    row.replaceChildren(box);
    box.focus();
    box.select();
}

/* --- the list --- */

function rowOf(head) {
    const row = el('li.talk' + (head.id === here ? '.here' : ''));
    const title = head.title || 'Without a title';
    const more = iconButton('more', `More for ${title}`, (e) => {
        e.stopPropagation();
        if (menu.hidden)
            openMenu(more, head, row);
        else
            closeMenu();
    }, { 'aria-haspopup': 'menu' });
    row.append(el('a', { href: '#' + head.id, title,
                         'aria-current': head.id === here ? 'page' : null }, title),
               runs.of(head.id) ? el('span.busy', { title: 'Being answered', role: 'img',
                                                    'aria-label': 'being answered' }) : '',
               more);
    return row;
}

function draw() {
    const wanted = search.value.trim().toLowerCase();
    const shown = heads.filter((h) => h.title.toLowerCase().includes(wanted));
    const groups = new Map();
    for (const head of shown) {
        const name = groupOf(head.updated);
        groups.set(name, [...(groups.get(name) || []), rowOf(head)]);
    }
    list.replaceChildren(...[...groups].flatMap(([name, rows]) => [el('h2', name),
                                                                   el('ul', ...rows)]));
    if (!shown.length)
        list.append(el('p', heads.length ? 'Nothing has that title.'
            : 'What you talk about is kept here, in this browser only.'));
}

function set(all, current) {
    heads = all;
    here = current;
    search.hidden = heads.length < 8;
    if (!list.contains(document.activeElement) || document.activeElement.tagName !== 'INPUT')
        draw();
}

function setUp(given) {
    acts = given;
    find('new').append(icon('plus'), 'New conversation');
    find('new').addEventListener('click', () => acts.begin());
    search.addEventListener('input', () => {
        draw();
        say(`${list.querySelectorAll('.talk').length} conversations`);
    });
    document.addEventListener('pointerdown', (e) => {
        if (!menu.hidden && !menu.contains(e.target) && !e.target.closest('.talk .quiet'))
            closeMenu();
    });
    list.addEventListener('scroll', closeMenu, { passive: true });
    list.addEventListener('click', (e) => {
        if (e.target.closest('.talk a'))
            acts.opened();
    });
}

module.exports = { setUp, set, draw };
