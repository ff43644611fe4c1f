#include "kube/yaml.h"

#include "base/str.h"

#include <string.h>
#include <yaml.h>

/* The type of the next event, YAML_NO_EVENT at the end or where the text is wrong; *line is where it begins. */
static yaml_event_type_t next(yaml_parser_t *p, size_t *line)
{
    yaml_event_type_t type;
    yaml_event_t event;

    if (!yaml_parser_parse(p, &event))
        return YAML_NO_EVENT;
    type = event.type;
    *line = event.start_mark.line + 1;
    yaml_event_delete(&event);
    return type == YAML_STREAM_END_EVENT ? YAML_NO_EVENT : type;
}

static bool is_start(yaml_event_type_t type)
{
    return type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
}

/* The rest of a node that began with `type`. */
static bool skip(yaml_parser_t *p, yaml_event_type_t type)
{
    size_t depth = is_start(type), line;

    while (depth > 0 && type != YAML_NO_EVENT) {
        type = next(p, &line);
        if (is_start(type))
            depth++;
        else if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
            depth--;
    }
    return type != YAML_NO_EVENT;
}

static bool is_word(const yaml_event_t *event, const char *name)
{
    return event->type == YAML_SCALAR_EVENT &&
           span_is(span_of(event->data.scalar.value, event->data.scalar.length), name);
}

/* In a mapping: up to the value of that key, whose line is told; 0: it is not there. */
static size_t find_key(yaml_parser_t *p, const char *name)
{
    for (;;) {
        yaml_event_type_t type;
        yaml_event_t event;
        size_t line;
        bool is_it;

        if (!yaml_parser_parse(p, &event))
            return 0;
        type = event.type;
        line = event.start_mark.line + 1;
        is_it = is_word(&event, name);
        yaml_event_delete(&event);
        if (type == YAML_MAPPING_END_EVENT || type == YAML_NO_EVENT)
            return 0;
        if (is_it)
            return line;
        if (!skip(p, type) || !skip(p, next(p, &line)))
            return 0;
    }
}

/* In a sequence: the first event of that item; 0: it is not there. */
static size_t find_item(yaml_parser_t *p, const char *number, yaml_event_type_t *ret_type)
{
    uint64_t index;
    size_t line = 0;

    if (!str_u64(span_cstr(number), UINT32_MAX, &index))
        return 0;
    for (uint64_t i = 0;; i++) {
        *ret_type = next(p, &line);
        if (*ret_type == YAML_SEQUENCE_END_EVENT || *ret_type == YAML_NO_EVENT)
            return 0;
        if (i == index)
            return line;
        if (!skip(p, *ret_type))
            return 0;
    }
}

static size_t look(yaml_parser_t *p, const char *const *path)
{
    yaml_event_type_t type;
    size_t line = 0, here, found = 0;

    do {
        type = next(p, &line);
    } while (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT);
    for (; *path; path++) {
        if (type == YAML_MAPPING_START_EVENT) {
            here = find_key(p, *path);
            type = here && path[1] ? next(p, &line) : YAML_NO_EVENT;
        } else if (type == YAML_SEQUENCE_START_EVENT) {
            here = find_item(p, *path, &type);
        } else {
            here = 0;
        }
        if (!here)
            break;
        found = here;
    }
    return found;
}

size_t kube_yaml_line(struct span text, const char *const *path)
{
    yaml_parser_t parser;
    size_t line;

    if (!yaml_parser_initialize(&parser))
        abort(); /* out of memory */
    yaml_parser_set_input_string(&parser, text.p ? text.p : (const uint8_t *)"", text.n);
    line = look(&parser, path);
    yaml_parser_delete(&parser);
    return line;
}
