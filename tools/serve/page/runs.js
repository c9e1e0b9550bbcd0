'use strict';
/* runs.js: answers that are under way: at most one a conversation, in as many conversations as one
 * likes, since the server works on them together. What has come is in the message, and kept in the
 * browser every second; who looks at it is told. */

const server = require('./server');
const store = require('./store');
const talks = require('./talk');

const SAVE_MS = 1000, TRIES = 20;
const all = new Map(); /* by the conversation's id */

function messagesOf(talk, message) {
    const list = talks.path(talk, message.parent)
        .filter((m) => m.role === 'user' || m.text)
        .map((m) => ({ role: m.role, content: m.text }));
    if (message.text || message.thinking)
        list.push({ role: 'assistant', content: message.text,
                    reasoning_content: message.thinking || undefined });
    if (talk.system.trim())
        list.unshift({ role: 'system', content: talk.system });
    return list;
}

/* What an event of the stream adds. */
function take(run, event, now) {
    const { message } = run;
    const stats = message.stats;
    const choice = event.choices && event.choices[0];
    if (event.prompt_progress) {
        run.progress = event.prompt_progress;
        stats.prompt = run.progress.total - run.had;
        run.hear('progress');
    }
    if (event.usage) {
        const details = event.usage.prompt_tokens_details || {};
        stats.prompt = event.usage.prompt_tokens - run.had;
        stats.tokens = event.usage.completion_tokens + run.had;
        if (!run.had)
            stats.cached = details.cached_tokens || 0;
    }
    if (!choice)
        return;
    const { content, reasoning_content: thought } = choice.delta || {};
    if (content || thought) {
        if (!run.came && run.had)
            run.begun = now - (stats.total_ms || 0);
        run.came = true;
        stats.first_ms = stats.first_ms || now - run.begun;
        stats.total_ms = now - run.begun;
        stats.tokens++;
        run.progress = null;
    }
    if (thought) {
        message.thinking += thought;
        stats.thought_ms = now - run.begun - stats.first_ms;
    }
    if (content)
        message.text += content;
    if (choice.finish_reason === 'length')
        message.state = 'length';
    if (content || thought)
        run.hear('text');
}

const pause = (ms, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(new DOMException('stopped', 'AbortError'));
    });
});

/* Reads the answer; a server that is busy is asked again for a while. */
async function read(run, body) {
    for (let tries = 0;; tries++) {
        try {
            for await (const event of server.chat(body, run.controller.signal))
                take(run, event, performance.now());
            return;
        } catch (e) {
            if (!e.wait || tries === TRIES || run.came)
                throw e;
            run.hear('busy');
            await pause(1000 * Math.min(5, e.wait), run.controller.signal);
        }
    }
}

/* Runs the message's answer to its end; one that has some already is gone on with. hear(what):
 * progress, text, busy, end. failed(run) is called behind it. */
async function start(talk, message, settings, hear, failed) {
    const goesOn = Boolean(message.text || message.thinking);
    const run = { talk, message, hear: (what) => hear(run, what), progress: null, came: false,
                  controller: new AbortController(), begun: performance.now(), goesOn,
                  had: goesOn && message.stats && message.stats.tokens || 0 };
    const body = { ...settings, messages: messagesOf(talk, message) };
    if (goesOn)
        body.continue_final_message = true;
    all.set(talk.id, run);
    talk.own.add(message.id);
    message.state = 'running';
    message.error = '';
    message.stats = goesOn && message.stats || { tokens: 0 };
    const keep = setInterval(() => {
        if (message.stats.tokens)
            store.save(talk).catch(() => {});
    }, SAVE_MS);
    try {
        await read(run, body);
        if (message.state === 'running')
            message.state = 'done';
    } catch (e) {
        if (e.name === 'AbortError') {
            message.state = 'stopped';
        } else {
            message.state = 'failed';
            message.error = e.message;
            run.error = e;
        }
    }
    clearInterval(keep);
    all.delete(talk.id);
    talk.updated = Date.now();
    await store.save(talk).catch(() => {});
    run.hear('end');
    if (run.error)
        failed(run);
}

function stop(id) {
    const run = all.get(id);
    if (run)
        run.controller.abort();
    return Boolean(run);
}

const of = (id) => all.get(id);
const any = () => all.size > 0;

module.exports = { start, stop, of, any };
