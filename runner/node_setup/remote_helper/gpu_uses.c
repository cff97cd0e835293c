/* gpu_uses: lists the GPUs that are claimed, and those that nvidia-smi sees programs on; and watches them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/remote_helper/gpu_claims.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

#define SOCKETS         "/proc/net/unix"
#define SOCKETS_BYTES   ((size_t)16 << 20)
#define ANSWER_BYTES    ((size_t)256 << 10)
#define ASK_SECONDS     6.0 /* without persistence mode nvidia-smi first loads the driver */
#define LOOK_SECONDS    0.5 /* between two looks at the claims */
#define PROGRAM_SECONDS 3.0 /* between two questions for programs */
#define BEAT_SECONDS    10.0
enum { PROGRAMS_MOST = 256 };

typedef struct program {
    int64_t gpu;
    pid_t pid;
    char command[64];
} program;

/* What nvidia-smi said last. */
typedef struct gpus {
    char uuids[DT_CLAIM_GPUS_MOST][DT_CLAIM_KEY_SIZE];
    int64_t count;
    program programs[PROGRAMS_MOST];
    int64_t program_count;
} gpus;

static bool ask(dt_strbuf *out, const char *const *argv)
{
    int code;

    dt_strbuf_reset(out);
    return dt_child_run(
               &code,
               &(dt_child_call){
                   .argv = argv, .out = out, .most_bytes = ANSWER_BYTES, .seconds = ASK_SECONDS},
               NULL) == DT_OK &&
           code == 0;
}

static void read_uuids(gpus *out, dt_strbuf *text)
{
    static const char *const argv[] = {"nvidia-smi", "--query-gpu=index,uuid",
                                       "--format=csv,noheader", NULL};
    long long index;
    char uuid[80];

    out->count = 0;
    if (ask(text, argv))
        for (const char *line = text->data; *line != '\0';
             line += strcspn(line, "\n"), line += *line == '\n')
            if (sscanf(line, "%lld , %79[^ ,\n]", &index, uuid) == 2 && index >= 0 &&
                index < DT_CLAIM_GPUS_MOST) {
                snprintf(out->uuids[index], sizeof(out->uuids[index]), "%s", uuid);
                out->count = index + 1 > out->count ? index + 1 : out->count;
            }
    for (int64_t i = 0; out->count == 0 && i < DT_CLAIM_GPUS_MOST; i++) {
        dt_claim_uuid(out->uuids[i], i);
        if (out->uuids[i][0] == '\0')
            break;
        if (i + 1 == DT_CLAIM_GPUS_MOST || out->uuids[i + 1][0] == '\0')
            out->count = i + 1;
    }
}

/* Returns the number of a GPU by its key; -1: it is not known here. */
static int64_t gpu_of(const gpus *all, const char *key)
{
    char *end;
    long long number = strtoll(key, &end, 10);

    if (*end == '\0' && end != key)
        return number >= 0 && number < DT_CLAIM_GPUS_MOST ? number : -1;
    for (int64_t i = 0; i < all->count; i++)
        if (strcmp(all->uuids[i], key) == 0)
            return i;
    return -1;
}

/* A program that ended is told from one of another container, which is not seen either. */
static bool is_here(pid_t pid)
{
    return kill(pid, 0) == 0 || errno == EPERM;
}

static void read_programs(gpus *io, dt_strbuf *text)
{
    static const char *const argv[] = {"nvidia-smi",
                                       "--query-compute-apps=gpu_uuid,pid,process_name",
                                       "--format=csv,noheader", NULL};
    char uuid[80], name[512];
    long long pid;

    io->program_count = 0;
    if (!ask(text, argv))
        return;
    for (const char *line = text->data; *line != '\0' && io->program_count < PROGRAMS_MOST;
         line += strcspn(line, "\n"), line += *line == '\n') {
        program *added = &io->programs[io->program_count];
        const char *base;

        name[0] = '\0';
        if (sscanf(line, "%79[^ ,\n] , %lld , %511[^\n]", uuid, &pid, name) < 2 || pid <= 0 ||
            (added->gpu = gpu_of(io, uuid)) < 0)
            continue;
        base = strrchr(name, '/');
        added->pid = is_here((pid_t)pid) ? (pid_t)pid : -(pid_t)pid;
        snprintf(added->command, sizeof(added->command), "%.60s", base != NULL ? base + 1 : name);
        io->program_count++;
    }
}

/* --- what uses them */

static void add_use(json_t *uses, int64_t gpu, const char *who, const char *run, const char *owner)
{
    json_t *use;
    size_t i;

    json_array_foreach(uses, i, use) {
        if (json_integer_value(json_object_get(use, "gpu")) == gpu)
            return; /* a claim comes before programs, which may be the run's */
    }
    json_array_append_new(uses, json_pack("{s:I, s:o, s:o, s:o}", "gpu", (json_int_t)gpu, "who",
                                          dt_json_text(who), "run", dt_json_text(run), "owner",
                                          dt_json_text(owner)));
}

/* Returns the keys that are claimed, one a line. */
static void read_claimed(dt_strbuf *out)
{
    static const char mark[] = " @dtrun-gpu/";
    dt_strbuf text;

    dt_strbuf_reset(out);
    dt_strbuf_init(&text);
    if (dt_file_read(&text, SOCKETS, SOCKETS_BYTES, NULL) == DT_OK)
        for (const char *at = text.data; (at = strstr(at, mark)) != NULL;) {
            size_t length;

            at += sizeof(mark) - 1;
            length = strcspn(at, "\n");
            dt_strbuf_add(out, at, length);
            dt_strbuf_add_char(out, '\n');
        }
    dt_strbuf_release(&text);
}

bool dt_gpus_are_claimed(void)
{
    dt_strbuf claimed;
    bool any;

    dt_strbuf_init(&claimed);
    read_claimed(&claimed);
    any = claimed.length > 0;
    dt_strbuf_release(&claimed);
    return any;
}

static void add_claims(json_t *uses, const gpus *all, const char *claimed)
{
    char key[DT_CLAIM_KEY_SIZE];
    dt_claim_holder holder;

    for (const char *line = claimed; *line != '\0'; line += strcspn(line, "\n") + 1) {
        int64_t gpu;

        snprintf(key, sizeof(key), "%.*s", (int)strcspn(line, "\n"), line);
        gpu = gpu_of(all, key);
        if (gpu < 0 || !dt_claim_ask(&holder, key))
            continue;
        if (holder.shared >= 0)
            dt_claim_close(holder.shared);
        add_use(uses, gpu, holder.who, holder.run, holder.owner);
    }
}

static void add_programs(json_t *uses, const gpus *all)
{
    for (int64_t i = 0; i < all->program_count; i++) {
        const program *one = &all->programs[i];
        char user[80] = "", who[DT_CLAIM_TEXT_SIZE], path[32];
        pid_t pid = one->pid > 0 ? one->pid : -one->pid;
        struct stat info;

        if (one->pid > 0 && !is_here(one->pid))
            continue; /* it has ended since */
        snprintf(path, sizeof(path), "/proc/%lld", (long long)pid);
        if (one->pid > 0 && stat(path, &info) == 0)
            dt_claim_user(user, sizeof(user), info.st_uid);
        snprintf(who, sizeof(who), "pid %lld (%s%s%s)", (long long)pid,
                 one->command[0] != '\0' ? one->command : "a program",
                 user[0] != '\0' ? ", user " : "", user);
        add_use(uses, one->gpu, who, "", "");
    }
}

/* Numbers the GPUs as CUDA does with CUDA_VISIBLE_DEVICES, and leaves out those that it hides. */
static json_t *see_as_cuda(json_t *uses, const gpus *all)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    json_t *seen = json_array(), *use;
    int64_t number = 0;
    size_t i;

    if (visible == NULL) {
        json_decref(seen);
        return uses;
    }
    for (const char *word = visible; *word != '\0'; number++) {
        size_t length = strcspn(word, ",");

        json_array_foreach(uses, i, use) {
            int64_t gpu = json_integer_value(json_object_get(use, "gpu"));
            char index[24];

            snprintf(index, sizeof(index), "%lld", (long long)gpu);
            if (length > 0 && ((strlen(index) == length && strncmp(word, index, length) == 0) ||
                               (gpu < all->count && strncmp(word, all->uuids[gpu], length) == 0))) {
                json_object_set_new(use, "gpu", json_integer(number));
                json_array_append(seen, use);
                json_array_remove(uses, i);
                break;
            }
        }
        word += length;
        word += *word == ',';
    }
    json_decref(uses);
    return seen;
}

json_t *dt_gpu_uses(void)
{
    gpus *all = dt_calloc(1, sizeof(*all));
    json_t *uses = json_array();
    dt_strbuf text;

    dt_strbuf_init(&text);
    read_uuids(all, &text);
    read_programs(all, &text);
    read_claimed(&text);
    add_claims(uses, all, text.data);
    add_programs(uses, all);
    uses = see_as_cuda(uses, all);
    dt_strbuf_release(&text);
    free(all);
    return uses;
}

static bool print_uses(const json_t *uses, dt_strbuf *line)
{
    dt_strbuf_reset(line);
    dt_json_write(line, uses);
    return puts(line->data) >= 0 && fflush(stdout) == 0;
}

/* The claims are asked again only if there are others, or it is time to. */
static void watch_gpus(void)
{
    double asked = -PROGRAM_SECONDS, said = 0;
    gpus *all = dt_calloc(1, sizeof(*all));
    json_t *uses = NULL, *claims = NULL;
    dt_strbuf text, claimed, before;
    bool heard = true;

    dt_strbuf_init(&text);
    dt_strbuf_init(&claimed);
    dt_strbuf_init(&before);
    while (heard) {
        double now = dt_clock_monotonic_seconds();
        json_t *next;

        if (now - asked >= PROGRAM_SECONDS) {
            read_uuids(all, &text);
            read_programs(all, &text);
            asked = dt_clock_monotonic_seconds();
            dt_strbuf_reset(&before);
            dt_strbuf_add_char(&before, '?');
        }
        read_claimed(&claimed);
        if (strcmp(claimed.data, before.data) != 0) {
            json_decref(claims);
            claims = json_array();
            add_claims(claims, all, claimed.data);
            dt_strbuf_reset(&before);
            dt_strbuf_add_str(&before, claimed.data);
        }
        next = json_deep_copy(claims);
        add_programs(next, all);
        next = see_as_cuda(next, all);
        if (uses == NULL || !json_equal(next, uses) || now - said >= BEAT_SECONDS) {
            heard = print_uses(next, &text);
            said = now;
        }
        json_decref(uses);
        uses = next;
        dt_clock_sleep_seconds(LOOK_SECONDS);
        heard = heard && dt_remote_helper_is_heard();
    }
    json_decref(uses);
    json_decref(claims);
    dt_strbuf_release(&text);
    dt_strbuf_release(&claimed);
    dt_strbuf_release(&before);
    free(all);
}

dt_status dt_remote_helper_gpus(bool watch, dt_error *err)
{
    dt_strbuf line;
    json_t *uses;

    if (watch) {
        watch_gpus();
        return DT_OK;
    }
    uses = dt_gpu_uses();
    dt_strbuf_init(&line);
    (void)print_uses(uses, &line);
    dt_strbuf_release(&line);
    json_decref(uses);
    return DT_OK;
}
