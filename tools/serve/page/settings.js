'use strict';
/* settings.js: how answers are asked for. A field that is empty leaves it to the server. */

const { el, find, say } = require('./dom');
const store = require('./store');

/* Name in the request, label, least, most, step, and what it does. */
const FIELDS = [
    ['temperature', 'Temperature', 0, 5, 0.05, '0 always takes the likeliest token'],
    ['max_tokens', 'Max tokens', 1, 1000000, 1, 'Of an answer; empty: what the context holds'],
    ['top_p', 'Top p', 0, 1, 0.01, 'The likeliest tokens that together have this probability'],
    ['top_k', 'Top k', 0, 100000, 1, 'Only so many of the likeliest tokens; 0: all'],
    ['min_p', 'Min p', 0, 1, 0.01, 'At least this part of the likeliest token’s probability'],
    ['typical_p', 'Typical p', 0, 1, 0.01, 'Tokens of typical surprise; 1: all'],
    ['repeat_penalty', 'Repeat penalty', 0.1, 5, 0.01, '1: none'],
    ['presence_penalty', 'Presence penalty', -2, 2, 0.1, '0: none'],
    ['frequency_penalty', 'Frequency penalty', -2, 2, 0.1, '0: none'],
    ['seed', 'Seed', 0, 9007199254740991, 1, 'The same seed and words give the same answer'],
];

let values = store.noted('settings', {});
let given = {}; /* the server's own */

/* The part of a request that the settings are. */
function request() {
    const body = {};
    for (const [name, , least, most] of FIELDS)
        if (Number.isFinite(values[name]) && values[name] >= least && values[name] <= most)
            body[name] = values[name];
    if (typeof values.stop === 'string' && values.stop)
        body.stop = values.stop.split('\n').filter((s) => s).slice(0, 4);
    if (values.thinking === 'on' || values.thinking === 'off')
        body.chat_template_kwargs = { enable_thinking: values.thinking === 'on' };
    return body;
}

function keep() {
    store.note('settings', values);
}

function fieldOf([name, label, least, most, step, about]) {
    const own = given[name];
    const box = el('input', { type: 'number', inputmode: 'decimal', min: least, max: most, step,
                              name, title: about, autocomplete: 'off',
                              placeholder: Number.isFinite(own) ? Math.round(own * 1000) / 1000
                                  : name === 'seed' ? 'random' : 'automatic' });
    if (name === 'seed' || name === 'max_tokens' || name === 'top_k')
        box.inputMode = 'numeric';
    if (Number.isFinite(values[name]))
        box.value = values[name];
    box.addEventListener('input', () => {
        const x = box.value === '' ? NaN : Number(box.value);
        if (Number.isFinite(x) && x >= least && x <= most)
            values[name] = x;
        else
            delete values[name];
        keep();
    });
    return el('label', label, box);
}

function thinkingField() {
    const box = el('select', { name: 'thinking' }, el('option', { value: '' }, 'automatic'),
        el('option', { value: 'on' }, 'on'), el('option', { value: 'off' }, 'off'));
    box.value = values.thinking || '';
    box.addEventListener('change', () => {
        values.thinking = box.value;
        keep();
    });
    return el('label', 'Thinking', box);
}

function stopField() {
    const box = el('textarea', { name: 'stop', rows: '2', placeholder: 'One a line, at most four',
                                 spellcheck: 'false' });
    box.style.minHeight = '58px';
    box.value = values.stop || '';
    box.addEventListener('input', () => {
        values.stop = box.value;
        keep();
    });
    return el('label.wide', 'Stop where this is written', box);
}

function systemField(text, changed) {
    const box = el('textarea', { name: 'system', 'aria-label': 'System prompt', rows: '4',
                                 placeholder: 'Who the model is, and how it should answer' });
    box.value = text;
    box.addEventListener('input', () => changed(box.value));
    return box;
}

const KEYS = [
    [['Enter'], 'sends'], [['Shift', 'Enter'], 'a new line'], [['Esc'], 'stops the answer'],
    [['/'], 'to the message box'], [['↑'], 'in an empty box: edit what was sent'],
    [['Alt', 'N'], 'a new conversation'],
];

function keysList() {
    return el('dl.keys', ...KEYS.flatMap(([keys, what]) => [
        el('dt', ...keys.flatMap((k) => [el('kbd', k), ' '])), el('dd', what)]));
}

/* The page of the panel; changed(text): the system prompt of the conversation shown is another. */
function page(system, changed) {
    const fields = el('div.fields', ...FIELDS.map(fieldOf), thinkingField(), stopField());
    const again = el('button.link', { type: 'button', onclick: () => {
        values = {};
        keep();
        fields.replaceChildren(...FIELDS.map(fieldOf), thinkingField(), stopField());
        say('All settings are the server’s');
    } }, 'Set all back');
    return el('div.page',
        el('section', el('h3', 'System prompt'),
           el('p.about', 'Of this conversation, and of those that are begun after it.'),
           systemField(system, changed)),
        el('section', el('h3', 'Sampling'),
           el('p.about', 'Of all conversations. What is empty is as the server has it. ', again),
           fields),
        el('section', el('h3', 'Keys'), keysList()),
        el('section', el('details.small', el('summary', 'Licences'),
           el('pre', find('licences').content.textContent))));
}

function setGiven(params) {
    given = params && typeof params === 'object' ? params : {};
}

module.exports = { request, page, setGiven };
