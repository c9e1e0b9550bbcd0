'use strict';
/* key.js: asks for the key of a server that wants one. */

const { el, find } = require('./dom');
const server = require('./server');

/* A promise of whether there is one now; refused: it did not take the last one. */
function askKey(refused) {
    const dialog = find('dialog');
    const box = el('input', { type: 'password', autocomplete: 'current-password', required: true,
                              spellcheck: 'false', id: 'key' });
    const check = el('input', { type: 'checkbox', id: 'keep-key' });
    const form = el('form', { method: 'dialog' },
        el('h2', { id: 'dialog-title' }, 'This server asks for a key'),
        el('p', 'It was set with --api-key when the server was started.'),
        el('label', 'Key', box),
        el('label.check', check, 'Keep it in this browser'),
        refused ? el('p.bad', { role: 'alert' }, 'The server does not take this key.') : '',
        el('div.buttons', el('button.firm', { type: 'submit', value: 'ok' }, 'Continue')));
    dialog.replaceChildren(form);
    return new Promise((resolve) => {
        form.addEventListener('submit', (e) => {
            e.preventDefault();
            server.setKey(box.value.trim(), check.checked);
            dialog.close('ok');
        });
        dialog.onclose = () => resolve(dialog.returnValue === 'ok');
        dialog.returnValue = '';
        dialog.showModal();
        box.focus();
    });
}

module.exports = askKey;
