/* Arrays and objects. An object is a list of members in insertion order, beside it a table of their
 * places by hash (open addressing, at most half full; the hash is FNV-1a of 64 bits). */
#include <stdlib.h>
#include <string.h>

#include "base/bare/jansson/jansson_int.h"
#include "base/error.h"

#include "base/banned.h"

/* Room for one more of `count` pointers. */
static void *grow(void *list, size_t count, size_t *capacity)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity != 0 ? 2 * *capacity : 4;
    return dt_json_memory(list, *capacity * sizeof(void *));
}

size_t json_array_size(const json_t *array)
{
    return json_is_array(array) ? array->as.array.count : 0;
}

json_t *json_array_get(const json_t *array, size_t at)
{
    return at < json_array_size(array) ? array->as.array.items[at] : NULL;
}

int json_array_set(json_t *array, size_t at, json_t *value)
{
    if (value == NULL || value == array || at >= json_array_size(array))
        return -1;
    json_incref(value);
    json_decref(array->as.array.items[at]);
    array->as.array.items[at] = value;
    return 0;
}

int json_array_append_new(json_t *array, json_t *value)
{
    if (value == NULL || value == array || !json_is_array(array)) {
        json_decref(value);
        return -1;
    }
    array->as.array.items =
        grow(array->as.array.items, array->as.array.count, &array->as.array.capacity);
    array->as.array.items[array->as.array.count++] = value;
    return 0;
}

int json_array_extend(json_t *array, json_t *other)
{
    size_t count = json_array_size(other); /* before: the two may be one */

    if (!json_is_array(array) || !json_is_array(other))
        return -1;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_incref(other->as.array.items[i]));
    return 0;
}

static uint64_t hash_of(const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    return hash;
}

/* Where the key is in the table, or would be. */
static uint32_t *find_slot(const json_t *object, const char *key)
{
    size_t mask = object->as.object.slot_count - 1;
    uint32_t *slots = object->as.object.slots;

    for (size_t at = hash_of(key) & mask;; at = (at + 1) & mask)
        if (slots[at] == 0 || strcmp(object->as.object.members[slots[at] - 1]->key, key) == 0)
            return &slots[at];
}

static void fill_table(json_t *object, size_t slot_count)
{
    object->as.object.slot_count = slot_count;
    object->as.object.slots =
        dt_json_memory(object->as.object.slots, slot_count * sizeof(object->as.object.slots[0]));
    memset(object->as.object.slots, 0, slot_count * sizeof(object->as.object.slots[0]));
    for (size_t i = 0; i < object->as.object.count; i++) {
        object->as.object.members[i]->at = i;
        *find_slot(object, object->as.object.members[i]->key) = (uint32_t)i + 1;
    }
}

static member *find(const json_t *object, const char *key)
{
    uint32_t place;

    if (!json_is_object(object) || object->as.object.count == 0 || key == NULL)
        return NULL;
    place = *find_slot(object, key);
    return place != 0 ? object->as.object.members[place - 1] : NULL;
}

size_t json_object_size(const json_t *object)
{
    return json_is_object(object) ? object->as.object.count : 0;
}

json_t *json_object_get(const json_t *object, const char *key)
{
    member *found = find(object, key);

    return found != NULL ? found->value : NULL;
}

static void add_member(json_t *object, const char *key, json_t *value)
{
    size_t count = object->as.object.count, length = strlen(key);
    member *new = dt_json_memory(NULL, sizeof(*new) + length + 1);

    DT_ASSERT(count < UINT32_MAX / 2);
    *new = (member){.at = count, .value = value};
    memcpy(new->key, key, length + 1);
    object->as.object.members = grow(object->as.object.members, count, &object->as.object.capacity);
    if (2 * (count + 1) > object->as.object.slot_count)
        fill_table(object,
                   object->as.object.slot_count != 0 ? 2 * object->as.object.slot_count : 8);
    object->as.object.members[count] = new;
    *find_slot(object, key) = (uint32_t)count + 1;
    object->as.object.count++;
}

int json_object_set_new(json_t *object, const char *key, json_t *value)
{
    member *there = find(object, key);

    if (value == NULL || value == object || !json_is_object(object) || key == NULL ||
        !dt_json_utf8_valid(key, strlen(key))) {
        json_decref(value);
        return -1;
    }
    if (there == NULL) {
        add_member(object, key, value);
        return 0;
    }
    json_decref(there->value);
    there->value = value;
    return 0;
}

int json_object_set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, json_incref(value));
}

int json_object_del(json_t *object, const char *key)
{
    member *gone = find(object, key);
    member **members;

    if (gone == NULL)
        return -1;
    members = object->as.object.members + gone->at;
    memmove(members, members + 1, (--object->as.object.count - gone->at) * sizeof(members[0]));
    fill_table(object, object->as.object.slot_count);
    json_decref(gone->value);
    free(gone);
    return 0;
}

void dt_json_members_free(json_t *object)
{
    for (size_t i = 0; i < object->as.object.count; i++) {
        json_decref(object->as.object.members[i]->value);
        free(object->as.object.members[i]);
    }
    free(object->as.object.members);
    free(object->as.object.slots);
}

static const member *member_of(const char *key)
{
    return (const member *)(const void *)(key - offsetof(member, key));
}

const char *json_object_key_after(const json_t *object, const char *key)
{
    size_t next = key != NULL ? member_of(key)->at + 1 : 0;

    return next < json_object_size(object) ? object->as.object.members[next]->key : NULL;
}

json_t *json_object_key_value(const char *key)
{
    return member_of(key)->value;
}
