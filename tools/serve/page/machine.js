'use strict';
/* machine.js: pictures of what the machine does: tokens a second, the context, the blocks of the KV
 * pool, prefixes that were found again. The server is asked once a second, and only while somebody
 * can see the answer. */

const { el, find, number } = require('./dom');
const server = require('./server');

const EVERY_MS = 1000, KEPT = 60; /* of the curve */
const USES = [['used', 'in use', 'u'], ['shared', 'shared', 's'], ['keeps', 'kept for reuse', 'k'],
              ['free', 'free', '.']];
const ARENAS = { model: 'Model’s tables', weights: 'Weights', kv: 'KV pool', state: 'Sequences',
                 activations: 'Activations', scratch: 'Scratch', sampler: 'Sampling' };
let parts = null, timer = 0, last = null, rates = [], context = null;

const bytes = (n) => n >= 1e9 ? (n / 1e9).toFixed(2) + ' GB' : n >= 1e6 ? (n / 1e6).toFixed(1)
    + ' MB' : number(n / 1e3) + ' kB';

function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

/* A canvas's context in CSS pixels, of its width and the height asked for. */
function canvasOf(canvas, height) {
    const scale = devicePixelRatio || 1, width = canvas.clientWidth || 290;
    canvas.style.height = height + 'px';
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const c = canvas.getContext('2d');
    c.scale(scale, scale);
    return [c, width];
}

/* --- tokens a second --- */

function drawRates() {
    const height = 56, [c, width] = canvasOf(parts.curve, height);
    const most = Math.max(1, ...rates) * 1.12, step = width / (KEPT - 1);
    const x = (i) => width - (rates.length - 1 - i) * step;
    const y = (r) => height - 2 - (height - 6) * r / most;
    if (rates.length < 2)
        return;
    c.beginPath();
    rates.forEach((r, i) => i ? c.lineTo(x(i), y(r)) : c.moveTo(x(i), y(r)));
    c.strokeStyle = colour('accent');
    c.lineWidth = 1.6;
    c.lineJoin = 'round';
    c.stroke();
    c.lineTo(x(rates.length - 1), height);
    c.lineTo(x(0), height);
    c.fillStyle = colour('accent');
    c.globalAlpha = .12;
    c.fill();
}

function takeRate(pool) {
    const now = performance.now();
    if (last && pool.generated_tokens >= last.tokens) {
        rates.push((pool.generated_tokens - last.tokens) / (now - last.at) * 1000);
        rates = rates.slice(-KEPT);
    }
    last = { tokens: pool.generated_tokens, at: now };
    const rate = rates.length ? rates[rates.length - 1] : 0;
    parts.rate.textContent = rate >= 100 ? number(rate) : rate.toFixed(1);
    parts.unit.textContent = pool.running > 1 ? `tokens/s, ${pool.running} answers together`
        : pool.running || rate ? 'tokens/s' : 'tokens/s: nothing is being answered';
    parts.curve.setAttribute('aria-label', `Tokens a second, the last minute: now ${
        rate.toFixed(1)}, at most ${Math.max(0, ...rates).toFixed(1)}`);
    drawRates();
}

/* --- the pool --- */

/* Squares as large as let all of them stand in the height. */
function drawCells(canvas, cells) {
    const width = canvas.clientWidth || 290;
    let size = 14;
    while (size > 3 && Math.ceil(cells.length / Math.floor(width / size)) * size > 200)
        size--;
    const columns = Math.floor(width / size), rows = Math.ceil(cells.length / columns);
    const [c] = canvasOf(canvas, rows * size);
    const gap = size > 8 ? 2.5 : size > 4 ? 1.5 : 1, side = size - gap;
    const fills = { u: colour('accent'), s: colour('warm'), k: colour('kept'),
                    '.': colour('free') };
    for (let i = 0; i < cells.length; i++) {
        const x = i % columns * size, y = Math.floor(i / columns) * size;
        c.beginPath();
        c.fillStyle = fills[cells[i]] || fills['.'];
        c.roundRect(x, y, side, side, side / 4);
        c.fill();
    }
}

function poolPart(pool, i, of) {
    const canvas = el('canvas', { role: 'img' }), legend = el('ul.legend');
    const name = of < 2 ? '' : pool.window ? `Layers that see ${number(pool.window)} tokens back`
        : 'Layers that see everything';
    return { canvas, legend, element: el('div', name ? el('p.about', name) : '', canvas, legend) };
}

function takePools(pools, tokens) {
    if (parts.pools.length !== pools.length) {
        parts.pools = pools.map((p, i) => poolPart(p, i, pools.length));
        parts.poolBox.replaceChildren(...parts.pools.map((p) => p.element));
    }
    pools.forEach((pool, i) => {
        const part = parts.pools[i];
        const count = { used: pool.used, shared: pool.shared, keeps: pool.kept, free: pool.free };
        drawCells(part.canvas, pool.cells);
        part.canvas.setAttribute('aria-label', `${number(pool.blocks)} blocks: `
            + USES.map(([n, label]) => `${number(count[n])} ${label}`).join(', '));
        part.legend.replaceChildren(...USES.map(([n, label]) =>
            el('li', el('i.' + n), label, el('b', number(count[n])))));
    });
    const each = pools.length ? pools[0].each : 1;
    parts.poolNote.textContent = `A square is ${each > 1 ? `${each} blocks` : 'a block'} of ${
        number(tokens * each)} tokens. Shared ones are in several answers at once.`;
}

/* --- the rest --- */

function lineOf(label, value) {
    return el('div.line', el('span', label), el('b', value));
}

function takeHits(pool) {
    const part = pool.prompt_tokens ? pool.cached_tokens / pool.prompt_tokens : 0;
    parts.hits.textContent = Math.round(100 * part);
    parts.hitBar.firstChild.style.width = 100 * part + '%';
    parts.hitLine.textContent = `${number(pool.cached_tokens)} of ${number(pool.prompt_tokens)
        } prompt tokens were found by their prefix and not computed again.`;
}

function drawContext() {
    if (!parts || !context)
        return;
    const { used, most } = context;
    parts.used.textContent = number(used);
    parts.most.textContent = `of ${number(most)} tokens`;
    parts.contextBar.firstChild.style.width = Math.min(100, 100 * used / most) + '%';
}

function takeMemory(memory) {
    if (!memory)
        return;
    const rows = Object.entries(memory).filter(([, n]) => Number.isFinite(n) && n > 0);
    parts.memory.replaceChildren(...rows.map(([name, n]) =>
        lineOf(ARENAS[name] || name, bytes(n))));
    parts.memorySection.hidden = !rows.length;
}

async function poll() {
    clearTimeout(timer);
    if (!parts || document.hidden || !parts.element.isConnected)
        return;
    try {
        const pool = await server.get('/pool');
        if (!parts)
            return;
        takeRate(pool);
        takePools(pool.pools, pool.block_tokens);
        takeHits(pool);
        parts.work.replaceChildren(
            lineOf('Answers under way', `${pool.running} of ${pool.sequences}`),
            lineOf('Requests answered', number(pool.requests)),
            lineOf('Tokens generated', number(pool.generated_tokens)));
        parts.lost.hidden = true;
    } catch (e) {
        if (!parts)
            return;
        parts.lost.textContent = e.message;
        parts.lost.hidden = false;
    }
    timer = setTimeout(poll, EVERY_MS);
}

/* The page of the panel. */
function page(props) {
    const bar = () => el('div.track', { 'aria-hidden': 'true' }, el('i'));
    parts = { rate: el('b', '0.0'), unit: el('span', 'tokens/s'),
              curve: el('canvas', { role: 'img' }), pools: [],
              poolBox: el('div'), poolNote: el('p.note'), hits: el('b', '0'), hitBar: bar(),
              hitLine: el('p.note'), used: el('b', '0'), most: el('span'), contextBar: bar(),
              memory: el('div'), work: el('div'), lost: el('p.note', { hidden: true }) };
    parts.memorySection = el('section', { hidden: true }, el('h3', 'Memory'), parts.memory);
    parts.element = el('div.page', parts.lost,
        el('section', el('h3', 'Speed'),
           el('div.big', parts.rate, parts.unit), parts.curve),
        el('section', el('h3', 'Context of this conversation'),
           el('div.big', parts.used, parts.most), parts.contextBar),
        el('section', el('h3', 'KV pool'), parts.poolBox, parts.poolNote),
        el('section', el('h3', 'Prefix hits'),
           el('div.big', parts.hits, el('span', '% reused')), parts.hitBar, parts.hitLine),
        el('section', el('h3', 'Work'), parts.work), parts.memorySection);
    takeMemory(props && props.memory);
    drawContext();
    last = null;
    setTimeout(poll);
    return parts.element;
}

function close() {
    parts = null;
    clearTimeout(timer);
}

function setContext(used, most) {
    context = { used, most };
    drawContext();
}

function setUp() {
    document.addEventListener('visibilitychange', poll);
    document.addEventListener('themechange', poll);
}

module.exports = { setUp, page, close, setContext };
