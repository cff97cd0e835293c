/* The reader and its strings. */
#ifndef DT_BARE_JANSSON_PARSE_STRING_H
#define DT_BARE_JANSSON_PARSE_STRING_H

#include "base/bare/jansson/jansson.h"
#include "base/strbuf.h"

typedef struct dt_json_parser {
    const char *text, *at, *end;
    size_t flags, depth;
    json_error_t *error; /* NULL: nobody asks */
    bool refused;
} dt_json_parser;

/* Notes the first problem, at p->at. Returns false. */
bool dt_json_refuse(dt_json_parser *p, const char *why);

/* Adds a string to `out`, from behind its first quote to behind its last. */
bool dt_json_parse_string(dt_json_parser *p, dt_strbuf *out);

#endif
