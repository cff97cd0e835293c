/* mpi: lists and reads the flags of mpirun and mpiexec, and reads lists of hosts and hostfiles. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runner/convert/launcher.h"

/* mpi_flags: lists the flags of mpirun and mpiexec of Open MPI, MPICH (hydra) and Intel MPI, whose names
 * have one or two dashes. tests/peers/launcher_flags.py compares the table with the programs. */

#define CORES  "dtrun divides the cores of a node among its ranks ('threads')"
#define FINDS  "dtrun finds its own connections"
#define LOGS   "'dtrun logs' has the output of each rank"
#define ORDER  "the ranks of a node have consecutive numbers"
#define STARTS "dtrun starts the nodes itself, over ssh or with Slurm"

#define LEFT(name, also, takes, why)               \
    {                                              \
        name, also, takes, DT_FLAG_LEFT, why, NULL \
    }
#define REFUSED(name, also, takes, why)               \
    {                                                 \
        name, also, takes, DT_FLAG_REFUSED, why, NULL \
    }

/* one flag per line */
/* clang-format off */
static const dt_flag mpi[] = {
    {"-np", "-n -c", DT_TAKES_INT, DT_FLAG_PART, "processes, divided among the nodes", NULL},
    {"-npernode", "-N -ppn -perhost", DT_TAKES_INT, DT_FLAG_PART, "processes on each node", NULL},
    {"-H", "-host -hosts", DT_TAKES_TEXT, DT_FLAG_PART, "nodes", NULL},
    {"-hostfile", "-machinefile -f", DT_TAKES_TEXT, DT_FLAG_PART, "nodes: the hosts of the file", NULL},
    {"-x", NULL, DT_TAKES_TEXT, DT_FLAG_EACH, "env", NULL},
    {"-genvlist", "-envlist", DT_TAKES_TEXT, DT_FLAG_EACH, "env", NULL},
    {"-genv", "-env", DT_TAKES_PAIR, DT_FLAG_EACH, "env", NULL},
    {"-wdir", "-wd", DT_TAKES_TEXT, DT_FLAG_FIELD, "workdir.folder", NULL},
    LEFT("-mca", "-gmca -pmca -omca -prtemca", DT_TAKES_PAIR, FINDS),
    LEFT("-genvall", "-envall", DT_TAKES_NOTHING, "ranks get the environment of their node"),
    LEFT("-bind-to", "-rank-by -membind -cpu-set -cpu-list", DT_TAKES_TEXT, CORES),
    LEFT("-bind-to-core", "-bind-to-socket -bind-to-none -use-hwthread-cpus -report-bindings -report-child-jobs-separately", DT_TAKES_NOTHING, CORES),
    LEFT("-cpus-per-proc", "-cpus-per-rank", DT_TAKES_INT, CORES),
    LEFT("-map-by", NULL, DT_TAKES_TEXT, ORDER),
    LEFT("-byslot", "-bycore", DT_TAKES_NOTHING, ORDER),
    REFUSED("-bynode", NULL, DT_TAKES_NOTHING, "it numbers the ranks across the nodes; those of a node have consecutive numbers here"),
    LEFT("-allow-run-as-root", "-noprefix -novm -leave-session-attached -do-not-resolve", DT_TAKES_NOTHING, "dtrun does not need it"),
    LEFT("-oversubscribe", "-nooversubscribe -use-regexp -enable-recovery -continuous", DT_TAKES_NOTHING, "'processes' can exceed the number of cores"),
    LEFT("-tag-output", "-timestamp-output -xml -verbose -v -q -quiet -display-map -display-allocation -display-topo -display-devel-map -display-devel-allocation -display-diffable-map -disable-recovery -d -debug-daemons -show-progress -print-all-exitcodes -prepend-rank -l", DT_TAKES_NOTHING, LOGS),
    LEFT("-output-filename", "-outfile-pattern -errfile-pattern -prepend-pattern -output -stdin -xml-file -output-proctable -report-events", DT_TAKES_TEXT, LOGS),
    LEFT("-prefix", "-launch-agent -plm -launcher -launcher-exec -rmk -bootstrap -bootstrap-exec -tmpdir -personality -tune -am -ompi-server", DT_TAKES_TEXT, STARTS),
    LEFT("-iface", "-topolib -demux -nameserver -localhost -order-nodes -branch-count -pmi-port", DT_TAKES_TEXT, FINDS),
    LEFT("-disable-auto-cleanup", "-disable-hostname-propagation -skip-launch-node -enable-x -disable-x -profile", DT_TAKES_NOTHING, "dtrun does not need it"),
    LEFT("-report-state-on-timeout", "-get-stack-traces", DT_TAKES_NOTHING, "a failure has its own evidence"),
    REFUSED("-timeout", "-max-time", DT_TAKES_TEXT, "'time_limit' of the recipe limits the time: remove the flag"),
    REFUSED("-max-restarts", "-usize -gpus-per-proc -npersocket -ppr -slot-list -rankfile -rf -max-vm-size", DT_TAKES_TEXT, "a recipe cannot express it: remove the flag"),
    REFUSED("-pernode", "-genvnone -envnone -nolocal", DT_TAKES_NOTHING, "a recipe cannot express it: give -np and the processes of a node"),
    REFUSED("-default-hostfile", "-dvm -hnp -xterm", DT_TAKES_TEXT, "a recipe cannot express it: remove the flag"),
    REFUSED("-do-not-launch", "-set-cwd-to-session-dir -terminate", DT_TAKES_NOTHING, "a recipe cannot express it: remove the flag"),
    REFUSED("-app", "-configfile", DT_TAKES_TEXT, "several programs in one run are not supported"),
    REFUSED("-path", "-preload-files -s -preload-binary", DT_TAKES_TEXT, "'workdir' brings files to the nodes: give the path of the program"),
    REFUSED("-help", "-h -V -version -info", DT_TAKES_NOTHING, "it starts no training"),
};
/* clang-format on */

const dt_flag_table dt_launcher_mpi_flags = {.program = "mpirun",
                                             .flags = mpi,
                                             .count = sizeof(mpi) / sizeof(mpi[0]),
                                             .strict = true,
                                             .one_dash = true,
                                             .stops_at_operand = true};

/* launcher_hosts: reads the flags of mpirun, lists of hosts and hostfiles. */

enum { HOSTFILE_MOST = 1 << 20 };

bool dt_launcher_is_host(const char *text, size_t length)
{
    return length > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789.-_") >= length;
}

/* Adds a host with its slots, one slot without a number. */
static dt_status add_host(dt_launcher *l, const char *name, size_t length, const char *slots,
                          const char *from, dt_draft *draft, dt_error *err)
{
    char *end = NULL;
    long long count = slots != NULL ? strtoll(slots, &end, 10) : 1;

    if (!dt_launcher_is_host(name, length) || (slots != NULL && end == slots) || count < 1 ||
        count > DT_LAUNCHER_NODES_MOST || l->nodes == DT_LAUNCHER_NODES_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected hosts as in 'NAME:8', at most %d", from,
                       DT_LAUNCHER_NODES_MOST);
    for (int64_t i = 0; i < l->nodes; i++)
        if (strlen(l->hosts[i].name) == length && memcmp(l->hosts[i].name, name, length) == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "%s: the host '%s' is listed twice", from,
                           l->hosts[i].name);
    l->hosts[l->nodes++] = (dt_launcher_host){dt_arena_strndup(draft->arena, name, length), count};
    return DT_OK;
}

static void compare_hosts(dt_launcher *l)
{
    l->uneven = false;
    for (int64_t i = 1; i < l->nodes; i++)
        l->uneven = l->uneven || l->hosts[i].processes != l->hosts[0].processes;
}

dt_status dt_launcher_hostfile(dt_launcher *l, const char *path, int64_t most, const char *from,
                               dt_draft *draft, dt_error *err)
{
    dt_error ignored = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf text;
    size_t length;

    dt_strbuf_init(&text);
    if (l->slurm)
        DT_THROW(err, DT_ERR_USAGE, "%s: the job gives the nodes: remove it", from);
    if (dt_file_read(&text, dt_launcher_path(l, path, draft->arena), HOSTFILE_MOST, &ignored) !=
        DT_OK)
        DT_THROW(err, DT_ERR_USAGE,
                 "%s: cannot read the file, which names the nodes: import where "
                 "it is",
                 from);
    l->nodes = 0;
    l->hosts = dt_arena_alloc_array(draft->arena, DT_LAUNCHER_NODES_MOST, sizeof(l->hosts[0]));
    for (const char *at = text.length > 0 ? text.data : ""; *at != '\0';
         at += length + (at[length] == '\n')) {
        const char *name = at + strspn(at, " \t"), *slots;
        size_t size = strcspn(name, " \t\r\n:#");

        length = strcspn(at, "\n");
        if (size == 0 || name >= at + length || (most > 0 && l->nodes == most))
            continue;
        slots = memchr(name, '=', length - (size_t)(name - at));
        if (slots == NULL && name[size] == ':')
            slots = name + size;
        DT_TRY(add_host(l, name, size, slots != NULL ? slots + 1 : NULL, from, draft, err));
    }
    if (l->nodes == 0 || l->nodes < most)
        DT_THROW(err, DT_ERR_USAGE, "%s: the file has %lld hosts, expected at least %lld", from,
                 (long long)l->nodes, most > 0 ? (long long)most : 1);
    l->nodes_from = from;
    compare_hosts(l);
    l->per_node = l->hosts[0].processes;
    l->from = from;
out:
    dt_strbuf_release(&text);
    return st;
}

/* Divides the processes as mpirun does: the first host takes its slots, then the next one, until -np
 * processes are placed. Without slots and processes per node the shares are equal. */
static dt_status fill_hosts(dt_launcher *l, bool slots, int64_t each, const char *from,
                            dt_error *err)
{
    int64_t left = l->total > 0 ? l->total : INT64_MAX, used = 0, room = 0;

    for (int64_t i = 0; i < l->nodes; i++)
        room += each > 0 ? each : l->hosts[i].processes;
    if (each == 0 && !slots && l->total > 0) {
        each = l->total / l->nodes;
        if (l->total % l->nodes != 0)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: the processes cannot be divided among these hosts: give their "
                           "slots, as in NAME:4",
                           from);
    } else if (l->total > room) {
        return DT_FAIL(err, DT_ERR_USAGE,
                       "%s: %lld processes cannot be divided among these hosts, which have %lld "
                       "slots",
                       from, (long long)l->total, (long long)room);
    }
    for (int64_t i = 0; i < l->nodes; i++) {
        dt_launcher_host *host = &l->hosts[i];

        if (each > 0)
            host->processes = each;
        host->processes = host->processes < left ? host->processes : left;
        left -= host->processes;
        used += host->processes > 0;
    }
    l->nodes = used;
    compare_hosts(l);
    l->per_node = l->uneven ? 0 : l->hosts[0].processes;
    return DT_OK;
}

static dt_status take_hosts(dt_launcher *l, const dt_flags *flags, int64_t each, dt_draft *draft,
                            dt_error *err)
{
    const char *text = dt_flags_text(flags, "-H", NULL), *from = dt_flags_from(flags, "-H");
    dt_status st = DT_OK;
    size_t length;

    if (l->slurm)
        return DT_FAIL(err, DT_ERR_USAGE, "the job gives the nodes: remove the hosts of mpirun");
    if (text == NULL) {
        from = dt_flags_from(flags, "-hostfile");
        st = dt_launcher_hostfile(l, dt_flags_text(flags, "-hostfile", ""), 0, from, draft, err);
        return st == DT_OK ? fill_hosts(l, true, each, from, err) : st;
    }
    l->hosts = dt_arena_alloc_array(draft->arena, DT_LAUNCHER_NODES_MOST, sizeof(l->hosts[0]));
    for (const char *at = text; *at != '\0' && st == DT_OK; at += length + (at[length] == ',')) {
        size_t name = strcspn(at, ":,");

        length = strcspn(at, ",");
        if (name < length && at[name + 1 + strspn(at + name + 1, "0123456789")] != at[length])
            return DT_FAIL(err, DT_ERR_USAGE, "%s: expected hosts as in 'NAME:8'", from);
        st = add_host(l, at, name, name < length ? at + name + 1 : NULL, from, draft, err);
    }
    if (st == DT_OK && l->nodes == 0)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: it names no host", from);
    l->nodes_from = from;
    return st == DT_OK ? fill_hosts(l, strchr(text, ':') != NULL, each, from, err) : st;
}

/* Adds the variables of -x NAME=value, -x NAME, -genv NAME value and -genvlist NAME,NAME. */
static void take_env(dt_launcher *l, const dt_flags *flags, dt_draft *draft)
{
    size_t list = dt_flags_row(flags->table, "-genvlist", 9), length;

    for (size_t i = 0; i < flags->each_count; i++) {
        const char *text = flags->each[i].text;

        for (const char *at = text; *at != '\0'; at += length + (at[length] == ',')) {
            const char *item;

            length = flags->each[i].row == list ? strcspn(at, ",") : strlen(at);
            item = dt_arena_strndup(draft->arena, at, length);
            if (l->keeps)
                dt_launcher_variable(l, item, NULL, draft);
            else
                dt_draft_left(draft, dt_arena_printf(draft->arena, "-x %s", item),
                              "ranks get the environment of their node");
        }
    }
}

dt_status dt_launcher_mpi(dt_launcher *l, dt_draft *draft, dt_error *err)
{
    const char *total, *each;
    int64_t per_node;
    dt_flags flags;
    dt_status st = DT_OK;

    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->words[i].text, ":") == 0)
            DT_THROW(err, DT_ERR_USAGE, "':': several programs in one run are not supported");
    DT_TRY(dt_flags_read(&flags, &dt_launcher_mpi_flags, l->words, l->count, draft, err));
    dt_flags_carry(&flags);
    l->any = true;
    l->total = (int64_t)dt_flags_number(&flags, "-np", 0);
    per_node = (int64_t)dt_flags_number(&flags, "-npernode", 0);
    if (l->total < 0 || per_node < 0 || l->total > 1048576 || per_node > DT_LAUNCHER_NODES_MOST)
        DT_THROW(err, DT_ERR_USAGE, "mpirun: expected 1 to %d processes on each node",
                 DT_LAUNCHER_NODES_MOST);
    total = l->total > 0 ? dt_flags_from(&flags, "-np") : NULL;
    each = per_node > 0 ? dt_flags_from(&flags, "-npernode") : NULL;
    if (total != NULL && each != NULL)
        l->from = dt_arena_printf(draft->arena, "%s, %s", total, each);
    else if (total != NULL || each != NULL)
        l->from = total != NULL ? total : each;
    take_env(l, &flags, draft);
    if (dt_flags_given(&flags, "-H") || dt_flags_given(&flags, "-hostfile")) {
        const char *from = l->from;

        DT_TRY(take_hosts(l, &flags, per_node, draft, err));
        l->from = from != NULL ? from : l->nodes_from;
    } else if (l->slurm) {
        l->per_node = per_node;
    } else if (l->total == 0) {
        DT_THROW(err, DT_ERR_USAGE,
                 "mpirun: without -np, the number of processes depends on the "
                 "machine: give -np");
    } else if (per_node > 0) {
        if (l->total % per_node != 0)
            DT_THROW(err, DT_ERR_USAGE, "%s: the processes are not the same on each node", l->from);
        l->asked = l->total / per_node;
        l->asked_from = l->from;
        l->per_node = per_node;
    } else {
        l->per_node = l->total;
    }
    dt_launcher_drop(l, flags.taken);
out:
    return st;
}
