'use strict';
/* server.js: what the page asks its server, and nobody else. */

class Failure extends Error {
    constructor(status, message, code, wait) {
        super(message);
        this.status = status;
        this.code = code;
        this.wait = wait; /* seconds after which it may be asked again; 0: no use */
    }
}

/* The key lives in this window, or, where that was asked for, in this browser. */
const KEY = 'tern.key';
let key = '';
try {
    key = sessionStorage.getItem(KEY) || localStorage.getItem(KEY) || '';
} catch {
    key = '';
}

function setKey(value, keep) {
    key = value;
    try {
        sessionStorage.removeItem(KEY);
        localStorage.removeItem(KEY);
        if (value)
            (keep ? localStorage : sessionStorage).setItem(KEY, value);
    } catch {
        /* Then it holds until the page is closed. */
    }
}

async function failureOf(response) {
    let error = {};
    try {
        error = (await response.json()).error || {};
    } catch {
        /* Somebody else answered. */
    }
    const again = response.status === 429 || response.status === 503;
    const wait = again ? Number(response.headers.get('Retry-After')) || 1 : 0;
    return new Failure(response.status, error.message || `the server answered ${response.status}`,
                       error.code || '', wait);
}

async function ask(path, body, signal) {
    const headers = {};
    if (key)
        headers.Authorization = 'Bearer ' + key;
    if (body)
        headers['Content-Type'] = 'application/json';
    let response;
    try {
        response = await fetch(path, {
            method: body ? 'POST' : 'GET', headers, signal, cache: 'no-store',
            credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
            body: body ? JSON.stringify(body) : undefined });
    } catch (e) {
        if (e.name === 'AbortError')
            throw e;
        throw new Failure(0, 'the server does not answer', '', 0);
    }
    if (!response.ok)
        throw await failureOf(response);
    return response;
}

async function get(path) {
    return (await ask(path)).json();
}

/* The objects of a stream of events, one after another. */
async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
        const { value, done } = await reader.read().catch((e) => {
            if (e.name === 'AbortError')
                throw e;
            return { done: true }; /* the connection is gone; browsers have words of their own */
        });
        if (done)
            throw new Failure(0, 'the answer broke off', '', 0);
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        for (const line of lines) {
            if (!line.startsWith('data: '))
                continue;
            if (line === 'data: [DONE]')
                return;
            const event = JSON.parse(line.slice(6));
            if (event.error)
                throw new Failure(event.error.status || 500, event.error.message || 'it failed',
                                  event.error.code || '', 0);
            yield event;
        }
    }
}

async function* chat(body, signal) {
    const asked = { ...body, stream: true, stream_options: { include_usage: true },
                    return_progress: true };
    yield* events(await ask('/v1/chat/completions', asked, signal));
}

module.exports = { Failure, setKey, get, chat };
