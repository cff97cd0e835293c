/* What the files of this folder share. */
#ifndef DT_BARE_JANSSON_INT_H
#define DT_BARE_JANSSON_INT_H

#include <stdint.h>

#include "base/bare/jansson/jansson.h"

#define MAX_DEPTH 2048 /* of arrays and objects, as jansson */

typedef struct member {
    size_t at; /* in the object's list */
    json_t *value;
    char key[];
} member;

struct json_t {
    json_type type;
    size_t references; /* of true, false and null: not counted */
    union {
        json_int_t integer;
        double real;
        struct {
            char *bytes; /* and a zero */
            size_t length;
        } string;
        struct {
            json_t **items;
            size_t count, capacity;
        } array;
        struct {
            member **members; /* in insertion order */
            size_t count, capacity;
            uint32_t *slots; /* by hash: one more than the place of a member, 0 where empty */
            size_t slot_count;
        } object;
    } as;
};

json_t *dt_json_value_new(json_type type);
/* realloc and its end of the process. */
void *dt_json_memory(void *old, size_t bytes);
void dt_json_members_free(json_t *object);

/* The length of the UTF-8 character that starts at `text`, of `left` bytes; 0 where there is none.
 */
size_t dt_json_utf8_length(const char *text, size_t left);
bool dt_json_utf8_valid(const char *text, size_t length);

#endif
