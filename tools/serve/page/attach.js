'use strict';
/* attach.js: text files in the message that is being written: chosen, dropped on the page, or
 * pasted. They become part of its text, so that what is sent is what is seen. */

const { el, iconButton, find, toast, say } = require('./dom');

const MOST = 512 << 10;
const input = find('input');

/* A block of code, whose fence is longer than what stands in it. */
function blockOf(name, text) {
    const longest = (text.match(/`+/g) || []).reduce((n, run) => Math.max(n, run.length), 2);
    const fence = '`'.repeat(longest + 1), kind = /\.(\w{1,12})$/.exec(name);
    return `${name}:\n\n${fence}${kind ? kind[1] : ''}\n${text.trimEnd()}\n${fence}\n`;
}

/* Null: it is no text, or too long. */
async function textOf(file) {
    if (file.size > MOST)
        return null;
    const bytes = new Uint8Array(await file.arrayBuffer());
    try {
        return bytes.includes(0) ? null : new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
        return null;
    }
}

async function attach(files) {
    for (const file of [...files]) {
        const text = await textOf(file);
        if (text === null) {
            toast(`${file.name} is not a text file of at most ${MOST >> 10} KB`);
            continue;
        }
        const before = input.value.trimEnd();
        input.value = (before ? before + '\n\n' : '') + blockOf(file.name, text);
        input.dispatchEvent(new Event('input'));
        say(`${file.name} attached`);
    }
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
    input.scrollTop = input.scrollHeight;
}

function setUp() {
    const composer = find('composer');
    const chooser = el('input.hidden', { type: 'file', multiple: true, tabindex: '-1',
                                         id: 'attach', 'aria-label': 'Attach text files' });
    chooser.addEventListener('change', async () => {
        await attach(chooser.files);
        chooser.value = '';
    });
    composer.querySelector('.row').prepend(
        iconButton('clip', 'Attach text files', () => chooser.click()), chooser);
    const mark = (on) => composer.classList.toggle('dropping', on);
    /* A file that is dropped beside would take the place of the page. */
    document.addEventListener('dragover', (e) => {
        if (e.dataTransfer.types.includes('Files')) {
            e.preventDefault();
            mark(true);
        }
    });
    document.addEventListener('dragleave', (e) => mark(e.relatedTarget !== null));
    document.addEventListener('drop', (e) => {
        mark(false);
        if (e.dataTransfer.files.length) {
            e.preventDefault();
            attach(e.dataTransfer.files);
        }
    });
    input.addEventListener('paste', (e) => {
        if (e.clipboardData.files.length && !e.clipboardData.types.includes('text/plain')) {
            e.preventDefault();
            attach(e.clipboardData.files);
        }
    });
}

module.exports = { setUp };
