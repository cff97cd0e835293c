#include "engine/comm/comm_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "engine/channel/events.h"

/* --- exchange between all ranks */

static unsigned char nibble(char digit)
{
    return (unsigned char)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

dt_status dt_topology_exchange(void *all, const void *mine, size_t bytes,
                               const dt_comm_setup *setup, const char *what, dt_error *err)
{
    dt_status st = DT_OK;
    unsigned char *to = all;
    json_t *values = NULL;
    char meeting[128];

    snprintf(meeting, sizeof(meeting), "comm/%s/%s", setup->name, what);
    DT_TRY(dt_events_rendezvous(setup->events, meeting, mine, bytes, setup->timeout_seconds,
                                &values, err));
    for (int64_t rank = 0; rank < setup->group.world_size; rank++) {
        const json_t *value = json_array_get(values, (size_t)rank);
        const char *digits = json_string_value(value);

        if (json_string_length(value) != 2 * bytes)
            DT_THROW(err, DT_ERR_CORRUPT,
                     "rendezvous '%s': rank %lld gave %zu bytes where %zu were expected: do all "
                     "nodes run the same dtrun-engine?",
                     meeting, (long long)rank, json_string_length(value) / 2, bytes);
        for (size_t i = 0; i < bytes; i++)
            *to++ = (unsigned char)(nibble(digits[2 * i]) << 4 | nibble(digits[2 * i + 1]));
    }
out:
    json_decref(values);
    return st;
}

/* --- location of the ranks */

static dt_status read_node(int64_t *out, dt_error *err)
{
    const char *text = getenv("NODE_RANK");
    char *end;

    *out = -1;
    if (text == NULL || text[0] == '\0')
        return DT_OK;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || *out < 0)
        return DT_FAIL(err, DT_ERR_USAGE, "NODE_RANK is '%s': expected a whole number", text);
    return DT_OK;
}

static dt_status write_card(dt_handshake *out, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat space;
    dt_strbuf boot;
    dt_peer self;

    memset(out, 0, sizeof(*out));
    dt_strbuf_init(&boot);
    DT_TRY(read_node(&out->node, err));
    DT_TRY(dt_file_read(&boot, "/proc/sys/kernel/random/boot_id", 4096, err));
    snprintf(out->boot, sizeof(out->boot), "%.*s", (int)strcspn(boot.data, "\n"), boot.data);
    if (stat("/proc/self/ns/pid", &space) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read /proc/self/ns/pid: %s", strerror(errno));
    out->pid_space = space.st_ino;
    DT_TRY(dt_peer_self(&self, err));
    out->pid = self.pid;
    out->start_ticks = self.start_ticks;
    if (getrandom(out->nonce, sizeof(out->nonce), 0) != (ssize_t)sizeof(out->nonce))
        DT_THROW(err, DT_ERR_IO, "no random bytes: %s", strerror(errno));
out:
    dt_strbuf_release(&boot);
    return st;
}

static bool same_node(const dt_handshake *a, const dt_handshake *b)
{
    return strncmp(a->boot, b->boot, sizeof(a->boot)) == 0 && a->pid_space == b->pid_space &&
           a->node == b->node;
}

/* Find runs of adjacent members on the same node, cut at the maximum size of a segment. first: one
 * element more than there are members. */
static int64_t find_nodes(int64_t *first, const dt_handshake *handshakes, const dt_group *group)
{
    int64_t count = 0;

    for (int64_t m = 0; m < group->size; m++) {
        const dt_handshake *handshake = &handshakes[dt_group_rank(group, m)];

        if (m == 0 || !same_node(handshake - group->stride, handshake) ||
            m - first[count - 1] == DT_SEGMENT_MEMBERS_MAX)
            first[count++] = m;
    }
    first[count] = group->size;
    return count;
}

/* Also looks at the other groups, because they determine which rendezvous take place; this group
 * comes last, so that its nodes remain in `first`. */
static void find_all_nodes(dt_topology *topology, const dt_group *members)
{
    for (int64_t rank = 0; rank < members->world_size; rank++) {
        dt_group group = dt_group_of(rank, members->stride, members->size, members->world_size);
        int64_t count;

        if (group.rank != 0)
            continue;
        count = find_nodes(topology->first, topology->handshakes, &group);
        topology->some_share = topology->some_share || count < group.size;
        topology->some_cross = topology->some_cross || count > 1;
    }
    topology->node_count = find_nodes(topology->first, topology->handshakes, members);
    while (topology->first[topology->node + 1] <= members->rank)
        topology->node++;
}

dt_status dt_topology_find(dt_topology *out, const dt_comm_setup *setup, dt_error *err)
{
    int64_t world_size = setup->group.world_size;
    dt_status st = DT_OK;
    dt_handshake handshake;

    memset(out, 0, sizeof(*out));
    out->handshakes = calloc((size_t)world_size, sizeof(*out->handshakes));
    out->first = calloc((size_t)setup->group.size + 1, sizeof(*out->first));
    if (out->handshakes == NULL || out->first == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the places of %lld ranks",
                 (long long)world_size);
    DT_TRY(write_card(&handshake, err));
    DT_TRY(
        dt_topology_exchange(out->handshakes, &handshake, sizeof(handshake), setup, "places", err));
    find_all_nodes(out, &setup->group);
out:
    if (st != DT_OK)
        dt_topology_release(out);
    return st;
}

void dt_topology_release(dt_topology *topology)
{
    free(topology->handshakes);
    free(topology->first);
    memset(topology, 0, sizeof(*topology));
}

/* --- one segment per node */

int64_t dt_topology_members(const dt_topology *topology)
{
    return topology->first[topology->node + 1] - topology->first[topology->node];
}

/* Rank of the first member on this rank's node. */
static int64_t lead_of(const dt_comm_setup *setup)
{
    return dt_group_rank(&setup->group, setup->topology->first[setup->topology->node]);
}

void dt_topology_peers(dt_peer *out, const dt_comm_setup *setup)
{
    const dt_handshake *handshake = &setup->topology->handshakes[lead_of(setup)];

    for (int64_t i = 0; i < dt_topology_members(setup->topology);
         i++, handshake += setup->group.stride)
        *out++ = (dt_peer){handshake->pid, handshake->start_ticks};
}

dt_status dt_topology_map_segment(bool *shared, dt_segment *out, const dt_comm_setup *setup,
                                  dt_error *err)
{
    const dt_topology *topology = setup->topology;
    int64_t world_size = setup->group.world_size, count = dt_topology_members(topology);
    int64_t lead = lead_of(setup), rank = dt_group_rank(&setup->group, setup->group.rank);
    dt_segment_name name = {.fd = -1}, *names = calloc((size_t)world_size, sizeof(*names));
    uint8_t good = 1, *all_good = calloc((size_t)world_size, sizeof(*all_good));
    dt_error why = DT_ERROR_INIT;
    dt_status st = DT_OK;
    int fd = -1;

    *shared = false;
    memset(out, 0, sizeof(*out));
    if (names == NULL || all_good == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the names of shared memory");
    if (count > 1 && rank == lead)
        good = dt_segment_make(out, &name, &fd, count, &why) == DT_OK;
    DT_TRY(dt_topology_exchange(names, &name, sizeof(name), setup, "segments", err));
    if (count > 1 && rank != lead && names[lead].fd < 0)
        good = 0; /* the creator logs why */
    else if (count > 1 && rank != lead)
        good = dt_segment_open(out, &names[lead], topology->handshakes[lead].pid, count, &why) ==
               DT_OK;
    if (why.code != DT_OK)
        dt_log_warn("the ranks of this node cannot share memory and use Gloo instead: %s",
                    why.message);
    DT_TRY(dt_topology_exchange(all_good, &good, sizeof(good), setup, "mapped", err));
    *shared = memchr(all_good, 0, (size_t)world_size) == NULL;
out:
    if (fd >= 0)
        close(fd);
    if (!*shared)
        dt_segment_close(out);
    free(all_good);
    free(names);
    return st;
}
