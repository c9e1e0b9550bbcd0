/* The regular expressions of tokenizer.json files, written out by hand.
 *
 * Every family is a list of stages. A stage cuts a piece of text into smaller ones and sees
 * nothing outside of it, so that its ends are the ends of the text; the first piece that the
 * last stage finds is a word. A stage is one function that, given where a piece begins, says
 * where it ends: constant stack, no backtracking beyond one run, and every character is looked
 * at a bounded number of times, whatever the text.
 *
 * The look-ahead `\s+(?!\S)` that most patterns share means: of a run of white space before a
 * word all but the last character, which can then go with the word. What no alternative takes
 * stays as a piece of its own, up to the next place where one matches.
 *
 * A byte that is no UTF-8 counts as a symbol of one byte.
 */
#include "runtime/pretokenize.h"

#include "runtime/text.h"
#include "runtime/unicode.h"

/* Sets of classes. */
enum {
    LU = 1 << TERN_CP_LU, LL = 1 << TERN_CP_LL, LT = 1 << TERN_CP_LT, LM = 1 << TERN_CP_LM,
    LO = 1 << TERN_CP_LO,
    LETTER = LU | LL | LT | LM | LO,
    MARK = 1 << TERN_CP_MN | 1 << TERN_CP_MC,
    NUMBER = 1 << TERN_CP_N,
    PUNCTUATION = 1 << TERN_CP_P,
    SYMBOL = 1 << TERN_CP_S,
    SPACE = 1 << TERN_CP_SPACE,
    OTHER = PUNCTUATION | SYMBOL | MARK | 1 << TERN_CP_UNASSIGNED | 1 << TERN_CP_CONTROL,
    END = 1 << 15, /* what is past the end is in this class alone */
    /* Of the case-aware patterns: what a capitalised part and what a small part is made of. */
    UPPER = LU | LT | LM | LO | MARK,
    LOWER = LL | LM | LO | MARK,
};

/* One character: its code point, its class as a bit, and where the next one begins. */
struct here { uint32_t cp, is; size_t next; };

static struct here look(const unsigned char *text, size_t at, size_t end)
{
    if (at >= end)
        return (struct here){0, END, end};
    uint32_t cp;
    const size_t size = tern_unicode_decode(text + at, end - at, &cp);
    return (struct here){cp, 1u << tern_unicode_class(cp), at + size};
}

/* The end of the run of characters of these classes that begins at `at`. */
static size_t run(const unsigned char *text, size_t at, size_t end, uint32_t classes)
{
    for (struct here c = look(text, at, end); c.is & classes; c = look(text, at, end))
        at = c.next;
    return at;
}

static bool is_newline(uint32_t cp)
{
    return cp == '\r' || cp == '\n';
}

static size_t newlines(const unsigned char *text, size_t at, size_t end, bool slash)
{
    while (at < end && (is_newline(text[at]) || (slash && text[at] == '/')))
        at++;
    return at;
}

/* Bytes of one of 's 't 're 've 'm 'll 'd at this place, or 0. */
static size_t contraction(const unsigned char *text, size_t at, size_t end, bool any_case)
{
    if (end - at < 2 || text[at] != '\'')
        return 0;
    const unsigned char fold = any_case ? 0x20 : 0;
    const unsigned char a = text[at + 1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    const unsigned char b = end - at > 2 ? text[at + 2] | fold : 0;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* `\s+(?!\S)|\s+`, and before it `\s*[\r\n]+` if lines count. */
static size_t spaces(const unsigned char *text, size_t at, size_t end, bool lines)
{
    size_t last = at, line_end = at, stop = at;
    for (struct here c = look(text, at, end); c.is & SPACE; c = look(text, stop, end)) {
        last = stop;
        stop = c.next;
        if (is_newline(c.cp))
            line_end = stop;
    }
    if (lines && line_end > at)
        return line_end;
    return stop == end || last == at ? stop : last;
}

/* `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)` */
static size_t gpt2(const unsigned char *text, size_t at, size_t end)
{
    const size_t n = contraction(text, at, end, false);
    if (n)
        return at + n;
    const size_t start = at + (text[at] == ' ');
    const uint32_t is = look(text, start, end).is;
    if (is & (SPACE | END))
        return spaces(text, at, end, false);
    return run(text, start, end, is & LETTER ? LETTER : is & NUMBER ? NUMBER : OTHER);
}

/* `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?W+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
 * \s*[\r\n]+|\s+(?!\S)|\s+`, where W is what words are made of. */
static size_t lines_and_words(const unsigned char *text, size_t at, size_t end, uint32_t words,
                              unsigned digits)
{
    const size_t n = contraction(text, at, end, true);
    if (n)
        return at + n;
    struct here c = look(text, at, end);
    if (c.is & words)
        return run(text, at, end, words);
    if (c.is & NUMBER) {
        for (; digits && c.is & NUMBER; digits--, c = look(text, at, end))
            at = c.next;
        return at;
    }
    if (!is_newline(c.cp) && look(text, c.next, end).is & words)
        return run(text, c.next, end, words);
    const size_t start = at + (c.cp == ' ');
    const uint32_t other = OTHER & ~words;
    if (look(text, start, end).is & other)
        return newlines(text, run(text, start, end, other), end, false);
    return spaces(text, at, end, true);
}

static size_t llama3(const unsigned char *text, size_t at, size_t end)
{
    return lines_and_words(text, at, end, LETTER, 3);
}

static size_t qwen2(const unsigned char *text, size_t at, size_t end)
{
    return lines_and_words(text, at, end, LETTER, 1);
}

static size_t qwen35(const unsigned char *text, size_t at, size_t end)
{
    return lines_and_words(text, at, end, LETTER | MARK, 1);
}

/* `U*L+` at this place, or `at`. The U* gives back what it took until an L follows: if none
 * stands after the run, the last of its characters that is an L as well ends the match. */
static size_t small_word(const unsigned char *text, size_t at, size_t end)
{
    size_t both = at, upper = at;
    for (struct here c = look(text, at, end); c.is & UPPER; c = look(text, upper, end)) {
        upper = c.next;
        if (c.is & LOWER)
            both = upper;
    }
    const size_t lower = run(text, upper, end, LOWER);
    return lower > upper ? lower : both;
}

/* `P?U*L+|P?U+L*` with P `[^\r\n\p{L}\p{N}]`, or `at`. A mark is both P and a letter here: it is
 * tried as P first. */
static size_t cased_word(const unsigned char *text, size_t at, size_t end)
{
    const struct here c = look(text, at, end);
    const bool prefix = !(c.is & (LETTER | NUMBER | END)) && !is_newline(c.cp);
    if (prefix) {
        const size_t stop = small_word(text, c.next, end);
        if (stop > c.next)
            return stop;
    }
    const size_t stop = small_word(text, at, end);
    if (stop > at)
        return stop;
    const size_t start = prefix ? c.next : at;
    const size_t upper = run(text, start, end, UPPER);
    return upper > start ? upper : at;
}

static size_t cased(const unsigned char *text, size_t at, size_t end, unsigned digits,
                    bool contractions)
{
    const size_t word = cased_word(text, at, end);
    if (word > at)
        return contractions ? word + contraction(text, word, end, true) : word;
    struct here c = look(text, at, end);
    if (c.is & NUMBER) {
        for (; digits && c.is & NUMBER; digits--, c = look(text, at, end))
            at = c.next;
        return at;
    }
    const size_t start = at + (c.cp == ' ');
    if (look(text, start, end).is & OTHER)
        return newlines(text, run(text, start, end, OTHER), end, true);
    return spaces(text, at, end, true);
}

static size_t gpt4o(const unsigned char *text, size_t at, size_t end)
{
    return cased(text, at, end, 3, true);
}

static size_t tekken(const unsigned char *text, size_t at, size_t end)
{
    return cased(text, at, end, 1, false);
}

static size_t digit(const unsigned char *text, size_t at, size_t end)
{
    const struct here c = look(text, at, end);
    return c.is & NUMBER ? c.next : at;
}

static size_t digits(const unsigned char *text, size_t at, size_t end)
{
    return run(text, at, end, NUMBER);
}

static size_t digits3(const unsigned char *text, size_t at, size_t end)
{
    for (int i = 0; i < 3; i++)
        at = digit(text, at, end);
    return at;
}

static size_t ascii3(const unsigned char *text, size_t at, size_t end)
{
    for (size_t i = 0; i < 3; i++)
        if (end - at <= i || text[at + i] < '0' || text[at + i] > '9')
            return at;
    return at + 3;
}

static size_t line_end(const unsigned char *text, size_t at, size_t end)
{
    return at < end && is_newline(text[at]) ? at + 1 : at;
}

static bool among(uint32_t cp, const char *set)
{
    for (; *set; set++)
        if (cp == (unsigned char)*set)
            return true;
    return false;
}

/* `[\p{P}...]+` with some ASCII symbols added. */
static size_t punctuation(const unsigned char *text, size_t at, size_t end, const char *symbols)
{
    for (struct here c = look(text, at, end); c.is & PUNCTUATION || (c.cp && among(c.cp, symbols));
         c = look(text, at, end))
        at = c.next;
    return at;
}

static size_t default_marks(const unsigned char *text, size_t at, size_t end)
{
    return punctuation(text, at, end, "$+<=>^~|");
}

static size_t falcon_marks(const unsigned char *text, size_t at, size_t end)
{
    return punctuation(text, at, end, "$+<=>^~|`");
}

/* `\s?X+` */
static size_t spaced(const unsigned char *text, size_t at, size_t end, uint32_t classes)
{
    const struct here c = look(text, at, end);
    const size_t start = c.is & SPACE ? c.next : at;
    const size_t stop = run(text, start, end, classes);
    return stop > start ? stop : at;
}

static size_t spaced_letters(const unsigned char *text, size_t at, size_t end)
{
    return spaced(text, at, end, LETTER);
}

static size_t spaced_punctuation(const unsigned char *text, size_t at, size_t end)
{
    return spaced(text, at, end, PUNCTUATION);
}

/* `[U+4E00-U+9FA5 U+0800-U+4E00 U+AC00-U+D7FF]+` */
static size_t deepseek_cjk(const unsigned char *text, size_t at, size_t end)
{
    for (struct here c = look(text, at, end);
         (c.cp >= 0x800 && c.cp <= 0x9fa5) || (c.cp >= 0xac00 && c.cp <= 0xd7ff);
         c = look(text, at, end))
        at = c.next;
    return at;
}

static size_t deepseek_word(const unsigned char *text, size_t at, size_t end)
{
    const struct here c = look(text, at, end);
    const size_t start = c.is & SPACE ? c.next : at;
    size_t stop = start;
    for (struct here l = look(text, stop, end); tern_unicode_is_deepseek_letter(l.cp);
         l = look(text, stop, end))
        stop = l.next;
    return stop > start ? stop : at;
}

/* `[!-/:-~！-／：-～‘-‟　-。]`; the full-width ones are ASCII moved by 0xFEE0. */
static bool is_deepseek_mark(uint32_t cp)
{
    const uint32_t narrow = cp >= 0xff01 && cp <= 0xff5e ? cp - 0xfee0 : cp;
    return (narrow >= '!' && narrow <= '/') || (narrow >= ':' && narrow <= '~') ||
           (cp >= 0x2018 && cp <= 0x201f) || (cp >= 0x3000 && cp <= 0x3002);
}

static size_t deepseek_marks(const unsigned char *text, size_t at, size_t end)
{
    const struct here c = look(text, at, end);
    const size_t start = c.is & SPACE && is_deepseek_mark(look(text, c.next, end).cp) ? c.next : at;
    size_t stop = start;
    for (struct here m = look(text, stop, end); is_deepseek_mark(m.cp); m = look(text, stop, end))
        stop = m.next;
    return stop > start ? stop : at;
}

/* `[U+4E00-U+9FA5 U+3040-U+30FF]+` */
static size_t deepseek3_cjk(const unsigned char *text, size_t at, size_t end)
{
    for (struct here c = look(text, at, end);
         (c.cp >= 0x4e00 && c.cp <= 0x9fa5) || (c.cp >= 0x3040 && c.cp <= 0x30ff);
         c = look(text, at, end))
        at = c.next;
    return at;
}

static bool is_ascii_letter(unsigned char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* `A[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
 * with A the ASCII punctuation and symbols. */
static size_t deepseek3(const unsigned char *text, size_t at, size_t end)
{
    const struct here c = look(text, at, end);
    if (c.cp < 0x80 && c.is & (PUNCTUATION | SYMBOL) && c.next < end &&
        is_ascii_letter(text[c.next])) {
        for (at = c.next; at < end && is_ascii_letter(text[at]);)
            at++;
        return at;
    }
    if (c.is & (LETTER | MARK))
        return run(text, at, end, LETTER | MARK);
    const bool prefix = !(c.is & (PUNCTUATION | SYMBOL | END)) && !is_newline(c.cp);
    if (prefix && look(text, c.next, end).is & (LETTER | MARK))
        return run(text, c.next, end, LETTER | MARK);
    const size_t start = at + (c.cp == ' ');
    const size_t marks = run(text, start, end, PUNCTUATION | SYMBOL);
    if (marks > start)
        return newlines(text, marks, end, false);
    return spaces(text, at, end, true);
}

/* ` ?[^(\s|.,!?…。，、।۔،)]+` */
static size_t bloom(const unsigned char *text, size_t at, size_t end)
{
    static const uint32_t outside[] = {0x2026, 0x3002, 0xff0c, 0x3001, 0x964, 0x6d4, 0x60c};
    const size_t start = at + (at < end && text[at] == ' ');
    size_t stop = start;
    for (struct here c = look(text, stop, end); !(c.is & (SPACE | END));
         c = look(text, stop, end)) {
        bool out = c.cp && c.cp < 0x80 && among(c.cp, "(|.,!?)");
        for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
            out |= c.cp == outside[i];
        if (out)
            break;
        stop = c.next;
    }
    return stop > start ? stop : at;
}

/* `\s+$`: from the back, so that a run of spaces elsewhere is not walked from each of its
 * characters. White space is at most three bytes long. */
static size_t trailing_spaces(const unsigned char *text, size_t at, size_t end)
{
    size_t start = end;
    while (start > at) {
        size_t back = start - 1;
        while (back > at && start - back < 3 && (text[back] & 0xc0) == 0x80)
            back--;
        const struct here c = look(text, back, start);
        if (!(c.is & SPACE) || c.next != start)
            break;
        start = back;
    }
    return start > at ? start : end;
}

#define GPT2 {gpt2}
#define LLAMA3 {llama3}
#define QWEN2 {qwen2}
#define DIGIT_GPT2 {digit, gpt2}
#define DEEPSEEK3 {digits3, deepseek3_cjk, deepseek3}

static const struct tern_pre families[] = {
    {"", {default_marks, gpt2, digits, ascii3}, false, false},
    {"default", {default_marks, gpt2, digits, ascii3}, false, false},
    {"llama3", LLAMA3, true, true},
    {"llama-v3", LLAMA3, true, true},
    {"llama-bpe", LLAMA3, true, true},
    {"falcon3", LLAMA3, true, true},
    {"falcon-h1", LLAMA3, true, true},
    {"pixtral", LLAMA3, true, true},
    {"midm-2.0", LLAMA3, true, true},
    {"lfm2", LLAMA3, true, true},
    {"jina-v5-nano", LLAMA3, true, true},
    {"dbrx", LLAMA3, false, false},
    {"smaug-bpe", LLAMA3, false, false},
    {"chatglm-bpe", LLAMA3, false, false},
    {"glm4", LLAMA3, true, false},
    {"qwen2", QWEN2, false, false},
    {"deepseek-r1-qwen", QWEN2, false, false},
    {"kormo", QWEN2, false, false},
    {"megrez", QWEN2, false, false},
    {"stablelm2", QWEN2, false, false},
    {"hunyuan", QWEN2, false, false},
    {"solar-open", QWEN2, false, false},
    {"grok-2", QWEN2, false, false},
    {"qwen35", {qwen35}, false, false},
    {"smollm", DIGIT_GPT2, false, false},
    {"starcoder", DIGIT_GPT2, false, false},
    {"refact", DIGIT_GPT2, false, false},
    {"command-r", DIGIT_GPT2, false, false},
    {"codeshell", DIGIT_GPT2, false, false},
    {"exaone", DIGIT_GPT2, false, false},
    {"minerva-7b", DIGIT_GPT2, false, false},
    {"gpt-2", GPT2, false, false},
    {"phi-2", GPT2, false, false},
    {"mpt", GPT2, false, false},
    {"olmo", GPT2, false, false},
    {"jais", GPT2, false, false},
    {"exaone4", GPT2, false, false},
    {"trillion", GPT2, false, false},
    {"granite-docling", GPT2, false, false},
    {"modern-bert", GPT2, false, false},
    {"gpt-4o", {gpt4o}, false, false},
    {"llama4", {gpt4o}, false, false},
    {"kanana2", {gpt4o}, false, false},
    {"minimax-m2", {gpt4o}, false, false},
    {"tekken", {tekken}, true, true},
    {"deepseek-llm",
     {line_end, deepseek_word, deepseek_marks, trailing_spaces, deepseek_cjk, digits}, 0, 0},
    {"deepseek-coder",
     {line_end, spaced_letters, spaced_punctuation, deepseek_cjk, digit}, 0, 0},
    {"deepseek-v3", DEEPSEEK3, false, false},
    {"hunyuan-dense", DEEPSEEK3, false, false},
    {"joyai-llm", DEEPSEEK3, false, false},
    {"falcon", {falcon_marks, gpt2, ascii3}, false, false},
    {"bloom", {bloom}, false, false},
    {"poro-chat", {bloom}, false, false},
    {"gpt3-finnish", {bloom}, false, false},
    {"viking", {bloom, digit}, false, false},
};

const struct tern_pre *tern_pretokenize_find(tern_text name)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (tern_text_is(name, families[i].name))
            return &families[i];
    return NULL;
}

struct tern_split tern_pretokenize_start(const struct tern_pre *pre, tern_text text)
{
    struct tern_split s = {.pre = pre, .text = (const unsigned char *)text.data};
    while (s.n_stages < TERN_PRE_STAGES && pre->stages[s.n_stages])
        s.n_stages++;
    s.ends[0] = text.size;
    return s;
}

/* A match at `at`, or else what stands before the next match. */
static size_t isolate(const unsigned char *text, size_t at, size_t end, tern_pre_fn *match)
{
    size_t stop = match(text, at, end);
    if (stop > at)
        return stop;
    do
        at = look(text, at, end).next;
    while (at < end && match(text, at, end) == at);
    return at;
}

bool tern_pretokenize_next(struct tern_split *s, tern_text *word)
{
    if (s->at == s->ends[0])
        return false;
    for (size_t i = 0; i < s->n_stages; i++)
        if (s->at == s->ends[i + 1])
            s->ends[i + 1] = isolate(s->text, s->at, s->ends[i], s->pre->stages[i]);
    *word = (tern_text){(const char *)s->text + s->at, s->ends[s->n_stages] - s->at};
    s->at = s->ends[s->n_stages];
    return true;
}
