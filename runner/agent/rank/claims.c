/* claims: claims the GPUs of the ranks before they start, so that runs of several people never share one
 * (node_setup/remote_helper/gpu_claims.h). The claims are given up once the ranks have released what they used; a process
 * that is left has a copy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/names.h"
#include "runner/agent/agent_int.h"

#define TRY_SECONDS 0.01
enum { TRIES = 20 };

struct dt_agent_claim {
    dt_agent *agent;
    int64_t gpu; /* as in cuda:N of the ranks */
    char key[DT_CLAIM_KEY_SIZE];
    int fd; /* -1: none */
    uv_poll_t *poll;
};

/* --- keys */

void dt_agent_claims_name(dt_agent *agent)
{
    for (int64_t i = 0; i < agent->devices.count && i < DT_CLAIM_GPUS_MOST; i++)
        snprintf(agent->gpu_uuids[i], sizeof(agent->gpu_uuids[i]), "%s",
                 agent->devices.items[i].uuid);
}

/* The word of CUDA_VISIBLE_DEVICES for cuda:N; "": there is none. */
static void visible_word(char *out, size_t size, const char *visible, int64_t gpu)
{
    const char *word = visible != NULL ? visible : "";

    for (int64_t i = 0; i < gpu && *word != '\0'; i++) {
        word += strcspn(word, ",");
        word += *word == ',';
    }
    snprintf(out, size, "%.*s", (int)strcspn(word, ","), word);
}

static void find_key(dt_agent_claim *claim)
{
    const dt_agent *agent = claim->agent;
    char word[DT_CLAIM_KEY_SIZE];
    int64_t number = claim->gpu;

    visible_word(word, sizeof(word), agent->devices_visible, claim->gpu);
    snprintf(claim->key, sizeof(claim->key), "%s", agent->gpu_uuids[claim->gpu]);
    if (claim->key[0] != '\0')
        return;
    if (word[0] != '\0' && strspn(word, "0123456789") < strlen(word)) {
        snprintf(claim->key, sizeof(claim->key), "%s", word); /* a UUID, or that of a MIG device */
        return;
    }
    if (word[0] != '\0')
        number = strtoll(word, NULL, 10);
    dt_claim_uuid(claim->key, number);
    if (claim->key[0] == '\0')
        snprintf(claim->key, sizeof(claim->key), "%lld", (long long)number);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const dt_agent_claim *)a)->key, ((const dt_agent_claim *)b)->key);
}

static bool uses(const dt_agent_rank *rank, int64_t gpu)
{
    int64_t first = dt_device_gpu(rank->device);

    return first >= 0 && gpu >= first && gpu < first + rank->replicas;
}

/* Lists the GPUs of the ranks, in the order in which every run takes them: two runs never wait for each other. */
static void list(dt_agent *agent)
{
    agent->claims = dt_calloc(DT_CLAIM_GPUS_MOST, sizeof(agent->claims[0]));
    for (int64_t gpu = 0; gpu < DT_CLAIM_GPUS_MOST; gpu++) {
        dt_agent_claim *claim = &agent->claims[agent->claim_count];
        bool used = false;

        for (int64_t i = 0; i < agent->rank_count; i++)
            used = used || uses(&agent->ranks[i], gpu);
        if (!used)
            continue;
        *claim = (dt_agent_claim){.agent = agent, .gpu = gpu, .fd = -1};
        find_key(claim);
        agent->claim_count++;
    }
    qsort(agent->claims, (size_t)agent->claim_count, sizeof(agent->claims[0]), by_key);
}

/* --- one claim */

static void on_asked(uv_poll_t *poll, int status, int events)
{
    const dt_agent_claim *claim = poll->data;
    const char *user = getenv("USER");
    json_t *json = json_pack("{s:s, s:o, s:I, s:o}", "run", claim->agent->run, "owner",
                             dt_json_text(claim->agent->owner), "since_ms",
                             (json_int_t)claim->agent->claimed_ms, "user",
                             dt_json_text(user != NULL ? user : ""));
    dt_strbuf line;

    dt_strbuf_init(&line);
    dt_json_write(&line, json);
    dt_claim_answer(claim->fd, line.data);
    dt_strbuf_release(&line);
    json_decref(json);
}

static void serve(dt_agent_claim *claim)
{
    claim->poll = dt_calloc(1, sizeof(*claim->poll));
    if (uv_poll_init(&claim->agent->loop, claim->poll, claim->fd) != 0) {
        free(claim->poll);
        claim->poll = NULL; /* who asks is told the user and the process */
        return;
    }
    claim->poll->data = claim;
    uv_poll_start(claim->poll, UV_READABLE, on_asked);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

/* Returns whether the GPU is a run's of another owner. `holder` says whose. */
static bool is_refused(dt_agent_claim *claim, dt_claim_holder *holder)
{
    dt_agent *agent = claim->agent;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_claim_take(&claim->fd, claim->key, &problem);
    dt_strbuf text;

    for (int i = 0; i < TRIES && st == DT_ERR_BUSY && !dt_claim_ask(holder, claim->key); i++) {
        dt_clock_sleep_seconds(TRY_SECONDS); /* it ended just now, or does not listen yet */
        dt_error_clear(&problem);
        st = dt_claim_take(&claim->fd, claim->key, &problem);
    }
    dt_strbuf_init(&text);
    if (st == DT_ERR_BUSY && holder->uid == getuid() && agent->owner[0] != '\0' &&
        strcmp(holder->owner, agent->owner) == 0) {
        claim->fd = holder->shared;
        holder->shared = -1;
        dt_strbuf_add_fmt(&text, "GPU %lld is also used by run %s", (long long)claim->gpu,
                          holder->run);
        st = DT_OK;
    } else if (st != DT_OK && st != DT_ERR_BUSY) {
        dt_strbuf_add_fmt(&text, "%s: other people's runs do not see that it is used",
                          problem.message);
        st = DT_OK;
    }
    if (text.length > 0)
        dt_agent_log(agent, text.data);
    dt_strbuf_release(&text);
    dt_error_clear(&problem);
    if (claim->fd >= 0)
        serve(claim);
    return st != DT_OK;
}

/* --- all of them */

bool dt_agent_claims_take(dt_agent *agent, dt_claim_holder *holder, int64_t *gpu)
{
    bool refused = false;

    agent->claimed_ms = dt_clock_wall_ms();
    list(agent);
    for (int64_t i = 0; i < agent->claim_count && !refused; i++) {
        *holder = (dt_claim_holder){.shared = -1};
        refused = is_refused(&agent->claims[i], holder);
        if (holder->shared >= 0)
            dt_claim_close(holder->shared);
        *gpu = agent->claims[i].gpu;
    }
    if (refused)
        dt_agent_claims_release(agent);
    return !refused;
}

void dt_agent_claims_release(dt_agent *agent)
{
    for (int64_t i = 0; i < agent->claim_count; i++) {
        dt_agent_claim *claim = &agent->claims[i];

        if (claim->poll != NULL) {
            uv_poll_stop(claim->poll);
            uv_close((uv_handle_t *)claim->poll, on_closed);
        }
        dt_claim_close(claim->fd);
    }
    free(agent->claims);
    agent->claims = NULL;
    agent->claim_count = 0;
}

size_t dt_agent_claims_of(int fds[DT_CLAIM_GPUS_MOST], const dt_agent_rank *rank)
{
    const dt_agent *agent = rank->agent;
    size_t count = 0;

    for (int64_t i = 0; i < agent->claim_count; i++)
        if (agent->claims[i].fd >= 0 && uses(rank, agent->claims[i].gpu))
            fds[count++] = agent->claims[i].fd;
    return count;
}
