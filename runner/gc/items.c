#include <string.h>
#include <sys/stat.h>

#include "runner/gc/gc.h"
#include "runner/supervisor/folder/remove.h"

static int64_t bytes_of(const char *path)
{
    struct stat info;

    if (lstat(path, &info) != 0)
        return 0;
    return S_ISDIR(info.st_mode) ? dt_tree_bytes(path) : (int64_t)info.st_blocks * 512;
}

void dt_gc_add(dt_gc *gc, dt_gc_kind kind, const char *run, const char *path, int64_t time_ms)
{
    if (gc->count == gc->capacity) {
        int64_t wider = gc->capacity > 0 ? gc->capacity * 2 : 64;
        dt_gc_item *room = dt_arena_alloc_array(gc->arena, (size_t)wider, sizeof(room[0]));

        if (gc->count > 0)
            memcpy(room, gc->items, (size_t)gc->count * sizeof(room[0]));
        gc->items = room;
        gc->capacity = wider;
    }
    gc->items[gc->count++] = (dt_gc_item){
        .kind = kind, .run = run, .path = path, .bytes = bytes_of(path), .time_ms = time_ms};
}
