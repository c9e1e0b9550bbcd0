'use strict';
/* main.js: the page: which conversation is shown, what is done with it, and the frame around it.
 *
 *   talk.js      a conversation           store.js    conversations in the browser
 *   server.js    what is asked            runs.js     answers under way
 *   thread.js    messages                 markdown.js, code.js, readable.js   what models write
 *   sidebar.js   the list                 settings.js, machine.js   the panel
 *   key.js       the server's key         attach.js   text files
 *   dom.js       elements
 *
 * Nothing is fetched from elsewhere, and nothing that a model writes is markup before markdown.js
 * has looked at it. */

const { el, icon, iconButton, find, say, toast, download, number, letGo } = require('./dom');
const askKey = require('./key');
const attach = require('./attach');
const machine = require('./machine');
const runs = require('./runs');
const server = require('./server');
const settings = require('./settings');
const sidebar = require('./sidebar');
const store = require('./store');
const talks = require('./talk');
const thread = require('./thread');

const app = find('app'), input = find('input'), send = find('send'), panel = find('panel');
const narrow = matchMedia('(max-width: 760px)');
let talk = null;   /* the conversation that is shown */
let props = null;  /* what the server says of itself; null: it has not answered */
let tab = null;    /* of the panel; null: it is closed */
const GAUGE_MS = 250;
let gaugeDrawn = 0;
const lives = new Map(); /* views of messages under way, by the conversation's id */

/* --- what is shown --- */

function contextOf() {
    return props && props.default_generation_settings && props.default_generation_settings.n_ctx
        || 0;
}

/* What the model is called, as short as it can be said. */
function nameOf() {
    return (props.model_alias || 'unnamed').replace(/\.(gguf|tern)$/, '');
}

function used() {
    const run = runs.of(talk.id);
    const list = talks.path(talk);
    const last = list.filter((m) => m.role === 'assistant' && m.stats && m.stats.prompt).pop();
    if (run && run.message.stats.prompt)
        return run.message.stats.prompt + run.message.stats.tokens;
    return last ? last.stats.prompt + (last.stats.tokens || 0) : 0;
}

function drawGauge() {
    const most = contextOf(), n = used(), gauge = find('gauge');
    machine.setContext(n, most);
    gauge.hidden = !most || !n;
    if (gauge.hidden)
        return;
    const part = Math.min(1, n / most), bar = el('i');
    bar.style.width = 100 * part + '%';
    gauge.classList.toggle('full', part > .9);
    gauge.title = 'Of the context, by this conversation';
    const rate = runs.of(talk.id) ? thread.rateOf(runs.of(talk.id).message.stats) : null;
    gauge.replaceChildren(rate ? el('span.rate', rate) : '',
                          el('div.track', { 'aria-hidden': 'true' }, bar),
                          `${number(n)} of ${number(most)}`);
}

function drawComposer() {
    const running = runs.of(talk.id);
    send.replaceChildren(running ? el('span.square') : icon('send'));
    send.setAttribute('aria-label', running ? 'Stop' : 'Send');
    send.title = running ? 'Stop (Esc)' : 'Send (Enter)';
    send.disabled = !running && (!input.value.trim() || !props);
    input.style.height = 'auto';
    input.style.height = input.scrollHeight + 'px';
    drawGauge();
}

function empty() {
    const mark = document.querySelector('.brand .mark').cloneNode(true);
    const fact = (name, value) => el('div', el('dt', name), el('dd', value));
    const facts = props ? el('dl', fact('Model', nameOf()),
                             fact('Context', `${number(contextOf())} tokens`),
                             fact('At once', `${props.total_slots} answers`)) : null;
    return el('div.empty', mark, el('h2', 'What is on your mind?'),
              el('p', 'The model runs on the machine that served this page. What you write goes'
                 + ' there and nowhere else.'), facts);
}

function drawTitle() {
    const title = talk.title || 'New conversation';
    find('title').textContent = title;
    document.title = talk.title ? `${talk.title} – Tern` : 'Tern';
}

async function drawList() {
    sidebar.set(await store.heads(), talk.id);
}

function drawPanel() {
    machine.close();
    panel.hidden = !tab;
    for (const name of ['settings', 'machine'])
        find('open-' + name).setAttribute('aria-pressed', tab === name);
    if (!tab)
        return;
    const tabOf = (name, label) => el('button', { type: 'button', role: 'tab', id: 'tab-' + name,
        'aria-selected': String(tab === name), tabindex: tab === name ? '0' : '-1',
        'aria-controls': 'page-' + name, onclick: () => openPanel(name) }, label);
    const page = tab === 'machine' ? machine.page(props) : settings.page(talk.system, (text) => {
        talk.system = text;
        store.note('system', text);
        if (talk.messages.size)
            store.save(talk).catch(() => {});
    });
    page.id = 'page-' + tab;
    page.setAttribute('role', 'tabpanel');
    page.setAttribute('aria-labelledby', 'tab-' + tab);
    const tabs = el('div.tabs', el('div', { role: 'tablist', 'aria-label': 'Panel' },
                                   tabOf('settings', 'Settings'), tabOf('machine', 'Machine')),
                    el('span.fill'), iconButton('close', 'Close panel', () => openPanel(null)));
    tabs.addEventListener('keydown', (e) => {
        if (e.key === 'ArrowRight' || e.key === 'ArrowLeft') {
            openPanel(tab === 'settings' ? 'machine' : 'settings');
            find('tab-' + tab).focus();
        }
    });
    panel.replaceChildren(tabs, page);
    drawGauge();
}

function openPanel(name) {
    const button = tab && find('open-' + tab);
    tab = name;
    if (!narrow.matches)
        store.note('panel', tab);
    drawPanel();
    if (!tab && button)
        button.focus();
}

/* --- conversations --- */

function show(shown) {
    talk = shown;
    const live = lives.get(talk.id);
    if (live)
        live.put();
    thread.show(talk, live, empty);
    drawTitle();
    drawComposer();
    if (tab)
        drawPanel();
    drawList();
}

/* Shows a conversation again, of which there is more. */
function follow(shown) {
    talk = shown;
    talk.joined = false;
    thread.inPlace(() => thread.show(talk, null, empty));
    drawTitle();
    drawComposer();
    if (tab && !panel.contains(document.activeElement))
        drawPanel();
}

function begin() {
    app.classList.remove('side-open');
    if (location.hash)
        history.pushState(null, '', location.pathname);
    show(talks.create(store.noted('system', '')));
    input.focus();
}

/* The conversation that the address names. */
async function fromAddress() {
    const id = location.hash.slice(1);
    const run = runs.of(id);
    const found = run ? run.talk : /^[0-9a-f]{24}$/.test(id) ? await store.load(id) : null;
    if (found)
        show(found);
    else if (!talk || talk.messages.size)
        show(talks.create(store.noted('system', '')));
}

const keep = () => store.save(talk).then(drawList, (e) =>
    toast(`This conversation could not be kept: ${e && e.message || 'no storage'}`));

async function remove(head) {
    const run = runs.of(head.id);
    if (run)
        run.controller.abort();
    const gone = run ? run.talk : await store.load(head.id);
    await store.remove(head.id);
    if (talk.id === head.id)
        begin();
    else
        drawList();
    toast('Conversation deleted', 'Undo', async () => {
        if (gone) {
            await store.save(gone);
            location.hash = gone.id;
            drawList();
        }
    });
}

async function rename(head, title) {
    const run = runs.of(head.id);
    const found = head.id === talk.id ? talk : run ? run.talk : await store.load(head.id);
    if (!found)
        return;
    found.title = title;
    await store.save(found);
    drawTitle();
    drawList();
}

/* --- files --- */

async function saveFile(list) {
    const found = [];
    for (const head of list) {
        const t = await store.load(head.id);
        if (t)
            found.push(talks.toFile(t));
    }
    const name = list.length === 1 ? 'conversation' : 'conversations';
    download(`tern-${name}-${new Date().toISOString().slice(0, 10)}.json`,
             JSON.stringify({ format: 'tern.conversations', version: 1, conversations: found },
                            null, 1));
}

async function openFile(file) {
    let list = null;
    try {
        const data = JSON.parse(await file.text());
        list = data.format === 'tern.conversations' ? data.conversations : null;
    } catch {
        list = null;
    }
    if (!Array.isArray(list)) {
        toast('That file holds no conversations of this page');
        return;
    }
    const known = new Set((await store.heads()).map((h) => h.id));
    let n = 0;
    for (const x of list) {
        const t = talks.fromFile(x);
        if (!t)
            continue;
        if (known.has(t.id))
            t.id = talks.newId();
        await store.save(t);
        n++;
    }
    toast(n === list.length ? `${number(n)} conversations imported`
        : `${number(n)} of ${number(list.length)} conversations imported; the others are damaged`);
    drawList();
}

/* --- answers --- */

function hear(run, what) {
    const live = lives.get(run.talk.id);
    if (what === 'end') {
        lives.delete(run.talk.id);
        live.end();
        drawList();
        if (run.talk === talk) {
            if (talk.joined)
                follow(talk);
            drawComposer();
            say(run.message.state === 'stopped' ? 'Stopped' : 'The answer is complete');
        }
        return;
    }
    if (what === 'busy' && run.talk === talk)
        say('The server is busy; waiting');
    if (run.talk !== talk || document.hidden)
        return;
    if (what === 'progress')
        live.reading(run.progress);
    else
        live.changed();
    const now = performance.now();
    if (now - gaugeDrawn > GAUGE_MS) {
        gaugeDrawn = now;
        drawGauge();
    }
}

/* An answer that failed for want of a key is asked for again with one. */
async function failed(run) {
    if (run.error.status === 401 && await askKey(true)) {
        if (run.goesOn) {
            goOn(run.talk, run.message);
        } else {
            talks.drop(run.talk, run.message);
            if (run.talk === talk)
                thread.show(talk, null, empty);
            answer(run.talk);
        }
    } else if (run.error.status === 0) {
        connect();
    }
}

/* Asks for what follows the leaf, a message of the user's. */
function answer(of) {
    goOn(of, talks.add(of, of.leaf, 'assistant', ''));
}

/* Asks for the message, the leaf, from where it is. */
function goOn(of, message) {
    const live = new thread.Live(of, message);
    lives.set(of.id, live);
    if (of === talk) {
        const old = find('thread').querySelector(`[data-id="${message.id}"]`);
        if (old)
            old.replaceWith(live.element);
        else
            find('thread').append(live.element);
    }
    runs.start(of, message, settings.request(), hear, failed);
    if (of === talk) {
        thread.toEnd();
        drawComposer();
    }
    drawList();
}

function ask(parent, text) {
    if (!talk.messages.size) {
        history.pushState(null, '', '#' + talk.id);
        talk.system = store.noted('system', '');
    }
    talks.add(talk, parent, 'user', text);
    thread.show(talk, null, empty);
    drawTitle();
    answer(talk);
    keep();
}

function sendInput() {
    const text = input.value.trim();
    if (!text || !props || runs.of(talk.id))
        return;
    input.value = '';
    store.note('draft', null);
    ask(talk.leaf, text);
}

async function stopThen(act) {
    if (runs.stop(talk.id))
        while (runs.of(talk.id))
            await new Promise((r) => setTimeout(r, 10));
    act();
}

const messageActs = {
    edit: (message, text) => stopThen(() => {
        ask(message.parent, text);
        input.focus();
    }),
    again: (message, instead) => stopThen(() => {
        talk.leaf = message.parent;
        if (instead)
            talks.drop(talk, message);
        thread.show(talk, null, empty);
        answer(talk);
        keep();
    }),
    goOn: (message) => {
        if (!props || runs.of(talk.id))
            return;
        goOn(talk, message);
        if (!narrow.matches)
            input.focus();
    },
    isFull: ({ stats }) => Boolean(contextOf() && stats
                                   && stats.prompt + stats.tokens >= contextOf()),
    choose: (message) => stopThen(() => {
        talks.choose(talk, message);
        const top = find('scroll').scrollTop;
        thread.show(talk, null, empty);
        thread.toPlace(top);
        drawComposer();
        keep();
    }),
};

/* --- the server --- */

function notice(text, action, act) {
    const to = find('notice');
    to.hidden = !text;
    to.replaceChildren(text || '', text && action
        ? el('button.link', { type: 'button', onclick: act }, action) : '');
}

let connecting = false;
async function connect() {
    if (connecting)
        return;
    connecting = true;
    let had = false;
    for (let wait = 500; ; wait = Math.min(8000, wait * 1.5)) {
        try {
            props = await server.get('/props');
            break;
        } catch (e) {
            if (e.status === 401) {
                wait = 0;
                notice('');
                if (!await askKey(had)) {
                    notice('This server asks for a key. ', 'Enter it', connect);
                    connecting = false;
                    return;
                }
                had = true;
                continue;
            }
            notice(e.status === 503 ? 'The model is being loaded …'
                : `No connection: ${e.message}. Trying again …`);
            await new Promise((r) => setTimeout(r, wait));
        }
    }
    connecting = false;
    notice('');
    settings.setGiven(props.default_generation_settings.params);
    find('model').textContent = find('model').title = nameOf();
    if (talk && !talk.messages.size)
        thread.show(talk, null, empty);
    if (talk)
        drawComposer();
    if (tab)
        drawPanel();
}

/* --- the frame --- */

function toggleSide() {
    if (narrow.matches) {
        const open = app.classList.toggle('side-open');
        if (open)
            find('new').focus();
    } else {
        store.note('side', app.classList.toggle('narrow-side'));
    }
}

const THEMES = [['auto', 'auto', 'as the system has it'], ['light', 'sun', 'light'],
                ['dark', 'moon', 'dark']];
function drawTheme(button) {
    const now = window.ternTheme.get() || 'auto';
    const [, name, label] = THEMES.find(([n]) => n === now) || THEMES[0];
    button.replaceChildren(icon(name));
    button.title = `Colours: ${label}`;
    button.setAttribute('aria-label', button.title);
}

function nextTheme(button) {
    const at = THEMES.findIndex(([n]) => n === (window.ternTheme.get() || 'auto'));
    const [name] = THEMES[(at + 1) % THEMES.length];
    store.note('theme', name === 'auto' ? null : name);
    window.ternTheme.set(name === 'auto' ? null : name);
    drawTheme(button);
    say(button.title);
}

function frame() {
    const chooser = el('input.hidden', { type: 'file', accept: 'application/json,.json',
                                         tabindex: '-1', 'aria-label': 'Import conversations' });
    chooser.addEventListener('change', () => {
        if (chooser.files[0])
            openFile(chooser.files[0]);
        chooser.value = '';
    });
    const theme = iconButton('auto', 'Colours', () => nextTheme(theme));
    drawTheme(theme);
    find('tools').append(theme, el('span.fill'),
        iconButton('open', 'Import conversations', () => chooser.click()),
        iconButton('save', 'Export all conversations', async () => saveFile(await store.heads())),
        chooser);
    document.querySelector('.brand').append(
        iconButton('menu', 'Hide conversations', toggleSide));
    find('top').prepend(iconButton('menu', 'Conversations', toggleSide, { id: 'open-side' }));
    find('top').append(el('span.model', { id: 'model' }),
        iconButton('plus', 'New conversation', begin, { id: 'begin' }),
        iconButton('machine', 'Machine', () => openPanel(tab === 'machine' ? null : 'machine'),
                   { id: 'open-machine' }),
        iconButton('sliders', 'Settings', () => openPanel(tab === 'settings' ? null : 'settings'),
                   { id: 'open-settings' }));
    find('scrim').addEventListener('click', toggleSide);
    document.querySelector('.skip').addEventListener('click', (e) => {
        e.preventDefault();
        input.focus();
    });
    if (store.noted('side', false))
        app.classList.add('narrow-side');
    if (innerWidth > 1100)
        tab = ['settings', 'machine'].includes(store.noted('panel', ''))
            ? store.noted('panel', '') : null;
}

function composer() {
    input.value = store.noted('draft', '');
    input.addEventListener('input', () => {
        store.note('draft', input.value.slice(0, 100000));
        drawComposer();
    });
    input.addEventListener('keydown', (e) => {
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            sendInput();
        } else if (e.key === 'ArrowUp' && !input.value && !runs.of(talk.id)) {
            e.preventDefault();
            thread.editLast(talk);
        }
    });
    send.addEventListener('click', () => {
        if (!runs.stop(talk.id))
            sendInput();
        input.focus();
    });
}

function keys(e) {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
    if (e.key === 'Escape' && !find('dialog').open) {
        if (app.classList.contains('side-open'))
            toggleSide();
        else if (runs.stop(talk.id))
            e.preventDefault();
        else if (tab && innerWidth <= 1100)
            openPanel(null);
    } else if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
        e.preventDefault();
        input.focus();
    } else if (e.altKey && e.code === 'KeyN') {
        e.preventDefault();
        begin();
    }
}

async function main() {
    const kept = await store.open();
    frame();
    composer();
    attach.setUp();
    machine.setUp();
    thread.setUp(messageActs);
    sidebar.setUp({ begin, rename, remove, save: (head) => saveFile([head]),
                    opened: () => app.classList.remove('side-open') });
    document.addEventListener('keydown', keys);
    document.addEventListener('visibilitychange', () => {
        const live = lives.get(talk.id);
        if (live && !document.hidden)
            live.changed();
    });
    window.addEventListener('hashchange', fromAddress);
    window.addEventListener('popstate', fromAddress);
    await fromAddress();
    store.onOthers(async (id, running) => {
        drawList();
        const found = id === talk.id && !runs.of(id) ? await store.load(id) : null;
        await letGo();
        if (found && found.messages.has(running))
            found.messages.get(running).state = 'elsewhere';
        if (found && !talks.path(found).some((m) => m.id === talk.leaf)
            && found.messages.has(talk.leaf))
            found.leaf = talk.leaf;
        /* Who edits is not disturbed: what they send is joined to what is kept. */
        if (found && id === talk.id && !runs.of(id) && !document.querySelector('.edit'))
            follow(found);
    });
    if (!kept)
        toast('This browser keeps nothing here: conversations last until the page is closed');
    if (!narrow.matches)
        input.focus();
    connect();
}

main();
