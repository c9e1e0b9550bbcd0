/* args.c: parses, checks and explains options from their tables. */
#include "tools/args.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wrong(char line[TERN_ARGS_LINE], const char *option, const char *value,
                  const char *needed)
{
    snprintf(line, TERN_ARGS_LINE, "%.60s: '%.60s' given, %s needed", option, value, needed);
    return false;
}

static bool out_of_range(char line[TERN_ARGS_LINE], const struct tern_option *o,
                         const char *called, const char *value)
{
    snprintf(line, TERN_ARGS_LINE, "%.60s: '%.60s' given, %s from %.15g to %.15g needed", called,
             value, o->kind == TERN_OPTION_REAL ? "a number" : "a whole number", o->least, o->most);
    return false;
}

/* Decimal digits with a sign and, in reals, a point and an exponent: what strtod takes beyond
 * that (nan, inf, hexadecimal, leading blanks) is no number here. */
static bool looks_like_number(const char *s, bool real)
{
    size_t digits = 0;
    if (*s == '-' || *s == '+')
        s++;
    for (; (*s >= '0' && *s <= '9') || (real && *s == '.'); s++)
        digits += *s != '.';
    if (real && digits && (*s == 'e' || *s == 'E')) {
        s += s[1] == '-' || s[1] == '+' ? 2 : 1;
        if (*s < '0' || *s > '9')
            return false;
        while (*s >= '0' && *s <= '9')
            s++;
    }
    return digits > 0 && *s == 0;
}

static bool to_real(const char *text, double least, double most, double *out)
{
    if (!looks_like_number(text, true))
        return false;
    char *end;
    double x = strtod(text, &end);
    if (*end != 0 || !isfinite(x) || x < least || x > most)
        return false;
    *out = x;
    return true;
}

static bool to_int(const char *text, double least, double most, int64_t *out)
{
    if (!looks_like_number(text, false))
        return false;
    errno = 0;
    long long x = strtoll(text, NULL, 10);
    if (errno != 0 || (double)x < least || (double)x > most)
        return false;
    *out = x;
    return true;
}

static bool to_u64(const char *text, uint64_t *out)
{
    if (!looks_like_number(text, false) || *text == '-')
        return false;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
}

/* Bytes: a whole number, and K, M or G for powers of 1024. */
static bool to_bytes(const char *text, uint64_t *out)
{
    char number[24];
    size_t n = strlen(text);
    int shift = 0;
    if (n > 0 && n < sizeof number && strchr("KMG", text[n - 1]))
        shift = text[--n] == 'K' ? 10 : text[n] == 'M' ? 20 : 30;
    if (n >= sizeof number)
        return false;
    memcpy(number, text, n);
    number[n] = 0;
    if (!to_u64(number, out) || *out > UINT64_MAX >> shift)
        return false;
    *out <<= shift;
    return true;
}

static bool to_kv_type(const char *text, tern_kv_type *out)
{
    static const char *const names[TERN_N_KV_TYPES] = {"f16", "f32", "q8_0", "q4_0"};
    for (int i = 0; i < TERN_N_KV_TYPES; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (tern_kv_type)i;
            return true;
        }
    }
    return false;
}

static bool to_bool(const char *text, bool *out)
{
    *out = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *out || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool to_list(const struct tern_option *o, const char *text, struct tern_list *list)
{
    list->n = 0;
    for (;;) {
        char number[24];
        size_t n = strcspn(text, ",");
        int64_t x;
        if (n >= sizeof number || list->n == TERN_ARGS_LIST)
            return false;
        memcpy(number, text, n);
        number[n] = 0;
        if (!to_int(number, o->least, o->most, &x))
            return false;
        list->at[list->n++] = (uint32_t)x;
        if (text[n] == 0)
            return true;
        text += n + 1;
    }
}

static bool add_bias(const char *called, const char *text, struct tern_settings *s,
                     char line[TERN_ARGS_LINE])
{
    char id[24];
    size_t n = strcspn(text, "=");
    int64_t token;
    double bias;
    if (n >= sizeof id || text[n] != '=')
        return wrong(line, called, text, "ID=X");
    memcpy(id, text, n);
    id[n] = 0;
    bool never = strcmp(text + n + 1, "-inf") == 0; /* the token cannot be drawn */
    if (!to_int(id, 0, INT32_MAX, &token) ||
        (!never && !to_real(text + n + 1, -1e6, 1e6, &bias)))
        return wrong(line, called, text, "a token's id = a number");
    if (s->n_biases == TERN_MAX_BIASES)
        return wrong(line, called, text, "at most 1024 of them");
    s->biases[s->n_biases++] = (tern_bias){(tern_token)token, never ? -INFINITY : (float)bias};
    return true;
}

static bool is_one_of(const char *text, const char *list)
{
    for (size_t n; *list; list += n + (list[n] == '|')) {
        n = strcspn(list, "|");
        if (strlen(text) == n && memcmp(text, list, n) == 0)
            return true;
    }
    return false;
}

/* name: the one of its two that was written. */
static bool cannot(char line[TERN_ARGS_LINE], const struct tern_option *o, const char *name,
                   const char *value)
{
    snprintf(line, TERN_ARGS_LINE, "%.40s%s%.60s: cannot be honoured: %s%s%s", name,
             *value ? " " : "", value, o->help, o->preset ? "; taken: " : "",
             o->preset ? o->preset : "");
    return false;
}

static bool is_shown(const struct tern_option *o)
{
    return o->kind != TERN_OPTION_IS_SO && o->kind != TERN_OPTION_ONLY &&
           o->kind != TERN_OPTION_NEVER;
}

/* called: the option's name as whoever gave the value knows it. */
static bool set(const struct tern_option *o, const char *called, const char *text,
                struct tern_settings *s, char line[TERN_ARGS_LINE])
{
    char *field = (char *)s + o->at;
    switch (o->kind) {
    case TERN_OPTION_FLAG:
        return to_bool(text, (bool *)(void *)field) || wrong(line, called, text, "true or false");
    case TERN_OPTION_INT:
        return to_int(text, o->least, o->most, (int64_t *)(void *)field) ||
               out_of_range(line, o, called, text);
    case TERN_OPTION_BYTES:
        return to_bytes(text, (uint64_t *)(void *)field) ||
               wrong(line, called, text, "a number of bytes (with K, M or G)");
    case TERN_OPTION_SEED:
        s->has_seed = true;
        return to_u64(text, &s->seed) ||
               wrong(line, called, text, "a whole number from 0 to 18446744073709551615");
    case TERN_OPTION_REAL:
        return to_real(text, o->least, o->most, (double *)(void *)field) ||
               out_of_range(line, o, called, text);
    case TERN_OPTION_TEXT:
        *(const char **)(void *)field = text;
        return true;
    case TERN_OPTION_STOP:
        if (*text == 0 || s->n_stops == TERN_MAX_STOPS)
            return wrong(line, called, text, "at most 32 texts of at least one byte");
        s->stops[s->n_stops++] = text;
        return true;
    case TERN_OPTION_BIAS:
        return add_bias(called, text, s, line);
    case TERN_OPTION_KV:
        return to_kv_type(text, (tern_kv_type *)(void *)field) ||
               wrong(line, called, text, "f16, f32, q8_0 or q4_0");
    case TERN_OPTION_LIST:
        return to_list(o, text, (struct tern_list *)(void *)field) ||
               out_of_range(line, o, called, text);
    case TERN_OPTION_ONLY:
        return is_one_of(text, o->preset) || cannot(line, o, called, text);
    case TERN_OPTION_NEVER:
        return cannot(line, o, called, "");
    case TERN_OPTION_IS_SO:
        return true;
    }
    return false;
}

/* name with its dashes; n bytes of it are the name. */
static const struct tern_option *find(const struct tern_command *c, const char *name, size_t n)
{
    for (size_t t = 0; c->tables[t]; t++)
        for (const struct tern_option *o = c->tables[t]; o->name; o++)
            if ((strlen(o->name) == n && memcmp(o->name, name, n) == 0) ||
                (o->alias && strlen(o->alias) == n && memcmp(o->alias, name, n) == 0))
                return o;
    return NULL;
}

void tern_args_defaults(const struct tern_command *c, struct tern_settings *s)
{
    char line[TERN_ARGS_LINE];
    memset(s, 0, sizeof *s);
    for (size_t t = 0; c->tables[t]; t++)
        for (const struct tern_option *o = c->tables[t]; o->name; o++)
            if (o->preset && is_shown(o) && find(c, o->name, strlen(o->name)) == o)
                set(o, o->name, o->preset, s, line);
}

/* A text or a file that was given: another one would take its place unseen. Of numbers the last
 * counts, so that what a script gives can be given otherwise behind it. */
static bool is_given(const struct tern_option *o, const struct tern_settings *s)
{
    const char *const *field = (const void *)((const char *)s + o->at);
    return o->kind == TERN_OPTION_TEXT && *field && *field != o->preset;
}

/* One argument that begins with a dash, and its value; *i moves past both. */
static bool parse_option(const struct tern_command *c, int argc, char **argv, int *i,
                         struct tern_settings *s, char line[TERN_ARGS_LINE])
{
    const char *arg = argv[*i];
    size_t n = arg[1] == '-' ? strcspn(arg, "=") : strlen(arg);
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
        s->help = true;
        return true;
    }
    const struct tern_option *o = find(c, arg, n);
    if (o == NULL) {
        snprintf(line, TERN_ARGS_LINE, "there is no option '%.60s'", arg);
        return false;
    }
    const char *value = arg[n] == '=' ? arg + n + 1 : NULL;
    if (o->kind == TERN_OPTION_NEVER)
        return cannot(line, o, memcmp(arg, o->name, n) ? o->alias : o->name, "");
    if (o->kind == TERN_OPTION_FLAG || o->kind == TERN_OPTION_IS_SO) {
        if (value)
            return wrong(line, o->name, value, "no value");
        return set(o, o->name, "true", s, line);
    }
    if (value == NULL && *i + 1 < argc)
        value = argv[++*i];
    if (value == NULL) {
        snprintf(line, TERN_ARGS_LINE, "%s: no value given, %s needed", arg, o->value);
        return false;
    }
    if (is_given(o, s)) {
        snprintf(line, TERN_ARGS_LINE, "%s: given twice", o->name);
        return false;
    }
    return set(o, o->name, value, s, line);
}

static const struct tern_command *parsed;

const char *tern_args_who(void)
{
    return parsed ? parsed->name : "";
}

bool tern_args_parse(const struct tern_command *c, int argc, char **argv, struct tern_settings *s,
                     char line[TERN_ARGS_LINE])
{
    parsed = c;
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != 0) {
            if (!parse_option(c, argc, argv, &i, s, line))
                return false;
            if (s->help)
                return true;
        } else if (c->word && s->model == NULL) {
            s->model = argv[i];
        } else {
            snprintf(line, TERN_ARGS_LINE, "'%.60s' is one word too many", argv[i]);
            return false;
        }
    }
    if (c->word && s->model == NULL) {
        snprintf(line, TERN_ARGS_LINE, "no %s given, %s needed", c->word, c->word_is);
        return false;
    }
    if ((s->grammar != NULL) + (s->schema != NULL) + s->json_mode > 1) {
        snprintf(line, TERN_ARGS_LINE, "more than one of --grammar, --schema, --json-mode given");
        return false;
    }
    return true;
}

const struct tern_option *tern_args_find(const struct tern_command *c, const char *name)
{
    char dashed[40];
    size_t n = strlen(name);
    if (n == 0 || n + 3 > sizeof dashed)
        return NULL;
    size_t dashes = n == 1 ? 1 : 2;
    memcpy(dashed, "--", dashes);
    for (size_t i = 0; i <= n; i++)
        dashed[dashes + i] = name[i] == '_' ? '-' : name[i];
    return find(c, dashed, n + dashes);
}

bool tern_args_set(const struct tern_command *c, const char *name, const char *text,
                   struct tern_settings *s, char line[TERN_ARGS_LINE])
{
    const struct tern_option *o = tern_args_find(c, name);
    if (o == NULL) {
        snprintf(line, TERN_ARGS_LINE, "there is no option '%.40s'", name);
        return false;
    }
    return set(o, name, text, s, line);
}

void tern_args_help(const struct tern_command *c)
{
    printf("usage: tern %s\n%s\n", c->usage, c->summary);
    for (size_t t = 0; c->tables[t]; t++) {
        if (c->tables[t]->name && !is_shown(c->tables[t]))
            continue;
        printf("\n");
        for (const struct tern_option *o = c->tables[t]; o->name; o++) {
            if (find(c, o->name, strlen(o->name)) != o)
                continue; /* an earlier table has the command's own of that name */
            char left[64];
            snprintf(left, sizeof left, "%s%s%s %s", o->alias ? o->alias : "",
                     o->alias ? ", " : "", o->name, o->value ? o->value : "");
            printf("  %-26s %s", left, o->help);
            if (o->preset)
                printf(" (default %s)", o->preset);
            printf("\n");
        }
    }
    if (c->notes)
        printf("\n%s\n", c->notes);
}
