/* schema_value.c: whether a value that stands in a schema is let in by what stands beside it. */
#include "tools/schema.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 8 };

static int bound_holds(const char *key, const json_t *bound, const json_t *value, bool *known)
{
    static const char *const keys[] = {"minimum", "maximum", "exclusiveMinimum",
                                       "exclusiveMaximum"};
    const double x = json_number_value(value), y = json_number_value(bound);
    for (int i = 0; i < 4; i++) {
        if (strcmp(key, keys[i]) != 0)
            continue;
        *known = true;
        if (!json_is_number(value))
            return 1;
        if (!json_is_number(bound))
            return -1;
        return i == 0 ? x >= y : i == 1 ? x <= y : i == 2 ? x > y : x < y;
    }
    *known = false;
    return -1;
}

static size_t n_characters(const json_t *text)
{
    const char *p = json_string_value(text);
    size_t n = 0;
    for (size_t i = 0; i < json_string_length(text); i++)
        n += (p[i] & 0xC0) != 0x80;
    return n;
}

/* minLength and the like: what is counted, if it is of the value's type. */
static int count_holds(const char *key, const json_t *bound, const json_t *value, bool *known)
{
    size_t n;
    *known = true;
    if (strcmp(key + 3, "Length") == 0 && json_is_string(value))
        n = n_characters(value);
    else if (strcmp(key + 3, "Items") == 0 && json_is_array(value))
        n = json_array_size(value);
    else if (strcmp(key + 3, "Properties") == 0 && json_is_object(value))
        n = json_object_size(value);
    else if (strcmp(key + 3, "Length") == 0 || strcmp(key + 3, "Items") == 0 ||
             strcmp(key + 3, "Properties") == 0)
        return 1;
    else
        return *known = false, -1;
    if (!json_is_number(bound))
        return -1;
    return *key == 'm' && key[1] == 'i' ? (double)n >= json_number_value(bound)
                                        : (double)n <= json_number_value(bound);
}

static int pattern_holds(struct tern_schema *s, const json_t *pattern, const json_t *value)
{
    struct tern_pattern p;
    char why[TERN_ARGS_LINE];
    if (!json_is_string(value))
        return 1;
    const tern_text text = {json_string_value(value), json_string_length(value)};
    const tern_text regex = {json_string_value(pattern), json_string_length(pattern)};
    if (!json_is_string(pattern) || !tern_pattern_regex(&p, regex, s->work, why))
        return -1;
    /* What is read otherwise by others may be found where it is not found here, and no less. */
    const int holds = tern_pattern_has(&p, text);
    tern_pattern_free(&p);
    return holds;
}

static int required_holds(const json_t *names, const json_t *value)
{
    json_t *name;
    size_t i;
    if (!json_is_object(value))
        return 1;
    json_array_foreach((json_t *)names, i, name) {
        if (!json_is_string(name))
            return -1;
        if (!json_object_get(value, json_string_value(name)))
            return 0;
    }
    return json_is_array(names) ? 1 : -1;
}

static int both_hold(int a, int b)
{
    return a == 0 || b == 0 ? 0 : a < 0 || b < 0 ? -1 : 1;
}

static int properties_hold(struct tern_schema *s, json_t *properties, const json_t *value,
                           int depth)
{
    const char *name;
    json_t *schema;
    int all = json_is_object(properties) ? 1 : -1;
    json_object_foreach(properties, name, schema) {
        json_t *member = json_object_get(value, name);
        all = member ? both_hold(all, tern_schema_holds(s, schema, member, depth + 1)) : all;
    }
    return json_is_object(value) ? all : 1;
}

static int any_holds(struct tern_schema *s, json_t *list, const json_t *value, int depth)
{
    json_t *one;
    size_t i;
    int any = json_array_size(list) ? 0 : -1;
    json_array_foreach(list, i, one) {
        const int holds = tern_schema_holds(s, one, value, depth + 1);
        any = any == 1 || holds == 1 ? 1 : any < 0 || holds < 0 ? -1 : 0;
    }
    return any;
}

bool tern_schema_is_among(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (json_equal(one, value) || (json_is_number(one) && json_is_number(value) &&
                                       json_number_value(one) == json_number_value(value)))
            return true;
    }
    return false;
}

/* Lists of what all have to hold, as they are put together of several schemas. */
static int listed_hold(struct tern_schema *s, const json_t *list, const json_t *value,
                       int (*one)(struct tern_schema *, const json_t *, const json_t *))
{
    int all = 1;
    if (!json_is_array(list))
        return one(s, list, value);
    for (size_t i = 0; i < json_array_size(list); i++)
        all = both_hold(all, one(s, json_array_get(list, i), value));
    return all;
}

static int multiple_holds(struct tern_schema *s, const json_t *divisor, const json_t *value)
{
    (void)s;
    if (!json_is_number(value))
        return 1;
    if (!json_is_integer(divisor) || json_integer_value(divisor) <= 0)
        return -1;
    return fmod(json_number_value(value), (double)json_integer_value(divisor)) == 0;
}

static bool speaks_of_others(const char *key, const json_t *value)
{
    static const char *const arrays[] = {"items", "prefixItems", "additionalItems", "contains",
                                         "minContains", "maxContains", "uniqueItems"};
    static const char *const objects[] = {"additionalProperties", "patternProperties",
                                          "propertyNames"};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (strcmp(key, arrays[i]) == 0)
            return !json_is_array(value);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        if (strcmp(key, objects[i]) == 0)
            return !json_is_object(value);
    return strcmp(key, "format") == 0 && !json_is_string(value);
}

int tern_schema_keyword_holds(struct tern_schema *s, json_t *node, const char *key,
                              const json_t *value, int depth)
{
    json_t *keyword = json_object_get(node, key);
    bool known;
    int holds = bound_holds(key, keyword, value, &known);
    if (!known && strlen(key) > 3)
        holds = count_holds(key, keyword, value, &known);
    if (known || tern_schema_says_nothing(key) || speaks_of_others(key, value))
        return known ? holds : 1;
    if (strcmp(key, "type") == 0)
        return (tern_schema_types(node) & tern_schema_type_of(value)) != 0;
    if ((strcmp(key, "enum") == 0 || strcmp(key, "const") == 0) &&
        !tern_schema_work(s, "", 16 * tern_schema_weight(keyword)))
        return -1;
    if (strcmp(key, "enum") == 0)
        return json_is_array(keyword) ? tern_schema_is_among(keyword, value) : -1;
    if (strcmp(key, "const") == 0) {
        json_t *list = json_pack("[O]", keyword);
        holds = tern_schema_is_among(list, value);
        json_decref(list);
        return holds;
    }
    if (strcmp(key, "pattern") == 0)
        return listed_hold(s, keyword, value, pattern_holds);
    if (strcmp(key, "multipleOf") == 0)
        return listed_hold(s, keyword, value, multiple_holds);
    if (strcmp(key, "required") == 0)
        return required_holds(keyword, value);
    if (strcmp(key, "properties") == 0)
        return properties_hold(s, keyword, value, depth);
    if (strcmp(key, "anyOf") == 0)
        return any_holds(s, keyword, value, depth);
    if (strcmp(key, "not") == 0) {
        holds = tern_schema_holds(s, keyword, value, depth + 1);
        return holds < 0 ? -1 : !holds;
    }
    return -1;
}

int tern_schema_holds(struct tern_schema *s, json_t *node, const json_t *value, int depth)
{
    const char *key;
    json_t *keyword;
    int all = 1;
    s->n_turning++;
    if (json_is_object(node))
        node = tern_schema_flatten(s, node, "");
    s->n_turning--;
    if (json_is_boolean(node))
        return json_is_true(node);
    if (!json_is_object(node) || depth > MOST_DEPTH || ++s->n_turned > 1 << 16 ||
        !tern_schema_work(s, "", 200 + 50 * json_object_size(node)))
        return -1;
    json_object_foreach(node, key, keyword)
        all = both_hold(all, tern_schema_keyword_holds(s, node, key, value, depth));
    return all;
}
