/* start: starts the plan's ranks of this node as processes, engines or the programs of a command, and marks
 * the files that they use. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/describe.h"
#include "runner/agent/process/process.h"
#include "runner/agent/process/spawn.h"
#include "runner/agent/rank/output.h"
#include "runner/channel/protocol.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

/* cache_pins: marks the ranks' programs, libraries and data, and the agent's own file, as in use while the
 * agent runs (node_setup/remote_helper/remote_helper.h), so that another machine with the same home directory does
 * not remove them.
 */

static void mark(dt_agent *agent, const char *cache, const char *path)
{
    dt_error err = DT_ERROR_INIT;
    char *made;

    if (dt_cache_pin(&made, cache, path, &err) != DT_OK)
        dt_log_warn("%s", err.message); /* the file's age still protects it */
    if (made == NULL)
        return;
    agent->cache_pins = dt_array_room(agent->cache_pins, agent->cache_pin_count + 1,
                                      &agent->cache_pin_capacity, sizeof(agent->cache_pins[0]));
    agent->cache_pins[agent->cache_pin_count++] = made;
}

/* Marks every file of the cache that the plan names. */
static void mark_all(dt_agent *agent, const char *cache, const json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    if (json_is_string(value))
        mark(agent, cache, json_string_value(value));
    json_array_foreach((json_t *)value, i, item)
        mark_all(agent, cache, item);
    json_object_foreach((json_t *)value, key, item)
        mark_all(agent, cache, item);
}

static void on_refresh(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;

    for (size_t i = 0; i < agent->cache_pin_count; i++)
        dt_cache_pin_refresh(agent->cache_pins[i]);
}

void dt_agent_cache_pins_take(dt_agent *agent, const dt_agent_command *start)
{
    const uint64_t every_ms = (uint64_t)DT_CACHE_PIN_REFRESH_SECONDS * 1000;
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    dt_strbuf cache;

    dt_strbuf_init(&cache);
    if (length > 0 && dt_remote_helper_cache(&cache, NULL) == DT_OK) {
        self[length] = '\0';
        mark(agent, cache.data, self);
        mark(agent, cache.data, start->engine); /* "" of a command is none of the cache's files */
        mark_all(agent, cache.data, start->plan);
    }
    dt_strbuf_release(&cache);
    agent->cache_pin_timer.data = agent;
    if (agent->cache_pin_count > 0)
        uv_timer_start(&agent->cache_pin_timer, on_refresh, every_ms, every_ms);
}

void dt_agent_cache_pins_release(dt_agent *agent)
{
    for (size_t i = 0; i < agent->cache_pin_count; i++)
        dt_cache_pin_release(agent->cache_pins[i]);
    free(agent->cache_pins);
    agent->cache_pins = NULL;
    agent->cache_pin_count = 0;
}

/* The part of the plan that a node needs; the engine checks the rest when it reads the file. */
typedef struct layout {
    int64_t world_size;
    const char *first_node;
    json_t *ranks;
} layout;

static dt_status layout_read(layout *out, dt_agent *agent, json_t *plan, dt_error *err)
{
    const char *run;
    int64_t attempt;
    json_t *nodes;
    dt_status st;

    DT_TRY(dt_json_get_string(&run, plan, "run", "plan", err));
    DT_TRY(dt_json_get_int(&attempt, plan, "attempt", "plan", err));
    if (strcmp(run, agent->run) != 0 || attempt != agent->attempt)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "plan: it is for run '%.64s', attempt %lld, but this agent serves run '%s', "
                 "attempt %lld",
                 run, (long long)attempt, agent->run, (long long)agent->attempt);
    DT_TRY(dt_json_get_int(&out->world_size, plan, "world_size", "plan", err));
    DT_TRY(dt_json_get_array(&nodes, plan, "nodes", "plan", err));
    DT_TRY(dt_json_get_string(&out->first_node, json_array_get(nodes, 0), "name", "plan: nodes[0]",
                              err));
    DT_TRY(dt_json_get_array(&out->ranks, plan, "ranks", "plan", err));
    if (out->world_size < 1 || out->world_size > DT_PROTOCOL_MAX_RANKS ||
        (int64_t)json_array_size(out->ranks) != out->world_size)
        DT_THROW(err, DT_ERR_CORRUPT, "plan: 'world_size' is %lld, but %zu ranks are listed",
                 (long long)out->world_size, json_array_size(out->ranks));
out:
    return st;
}

/* Reads this node's ranks into agent->ranks, in the plan's order. */
static dt_status ranks_read(dt_agent *agent, const layout *world, int64_t node, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *entry;
    size_t i;

    agent->ranks = dt_calloc((size_t)world->world_size, sizeof(agent->ranks[0]));
    json_array_foreach(world->ranks, i, entry) {
        dt_agent_rank *rank = &agent->ranks[agent->rank_count];
        const char *device;
        int64_t on;

        DT_TRY(dt_json_get_int(&on, entry, "node", "plan: rank", err));
        if (on != node)
            continue;
        DT_TRY(dt_json_get_int(&rank->rank, entry, "rank", "plan: rank", err));
        DT_TRY(dt_json_get_int(&rank->local_rank, entry, "local_rank", "plan: rank", err));
        DT_TRY(dt_json_get_int_or(&rank->threads, entry, "threads", 0, "plan: rank", err));
        DT_TRY(dt_json_get_string(&device, entry, "device", "plan: rank", err));
        DT_TRY(dt_json_get_int_or(&rank->replicas, entry, "replicas", 1, "plan: rank", err));
        if (rank->rank < 0 || rank->rank >= world->world_size)
            DT_THROW(err, DT_ERR_CORRUPT, "plan: rank %lld is not below the world size",
                     (long long)rank->rank);
        snprintf(rank->device, sizeof(rank->device), "%s", device);
        rank->agent = agent;
        rank->kernel_log = -1;
        rank->heartbeat.progress = -1;
        agent->rank_count++;
    }
    if (agent->rank_count == 0)
        DT_THROW(err, DT_ERR_CORRUPT, "plan: no rank is on node %lld", (long long)node);
out:
    if (st != DT_OK) {
        free(agent->ranks);
        agent->ranks = NULL;
        agent->rank_count = 0;
    }
    return st;
}

static dt_status plan_write(const char *path, const json_t *plan, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write_pretty(&text, plan);
    st = dt_file_write_atomic(path, text.data, text.length, 0600, err);
    dt_strbuf_release(&text);
    return st;
}

/* Returns a port in the private range that is the same on every node of the run. */
static int64_t master_port(const char *run)
{
    uint32_t hash = 2166136261u;

    for (; *run != '\0'; run++)
        hash = (hash ^ (unsigned char)*run) * 16777619u;
    return 49152 + hash % 16384;
}

static void environment_for_node(dt_environment *out, const dt_agent *agent, const layout *world,
                                 const dt_agent_command *command)
{
    const char *name;
    json_t *value;

    dt_environment_init(out);
    if (dt_omp_spin_is_open())
        dt_environment_set(out, DT_OMP_SPIN, DT_OMP_SPIN_COUNT);
    if (getenv("CUDA_DEVICE_ORDER") == NULL) /* cuda:N is then GPU N of nvidia-smi */
        dt_environment_set(out, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    dt_environment_set(out, "MASTER_ADDR", world->first_node);
    dt_environment_set_int(out, "MASTER_PORT", master_port(agent->run));
    json_object_foreach(command->environment, name, value)
        dt_environment_set(out, name, json_string_value(value));
    dt_environment_set_int(out, "WORLD_SIZE", world->world_size);
    dt_environment_set_int(out, "LOCAL_WORLD_SIZE", agent->rank_count);
    dt_environment_set_int(out, "NODE_RANK", command->node);
    dt_environment_set(out, "DTRUN_RUN_ID", agent->run);
    dt_environment_set_int(out, "DTRUN_ATTEMPT", agent->attempt);
    dt_environment_set(out, "DTRUN_NODE_DIR", agent->folder);
    dt_environment_set_int(out, "DTRUN_CHANNEL", DT_SPAWN_CHANNEL_FD);
}

/* Records the process: it is the rank, whatever else fails. */
static void note_started(dt_agent_rank *rank, const dt_spawned *spawned)
{
    dt_agent *agent = rank->agent;
    dt_process process;

    rank->pid = spawned->pid;
    rank->running = true;
    rank->start_ticks = dt_process_read(&process, rank->pid) ? process.start_ticks : 0;
    dt_journal_add(&agent->journal,
                   json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:s?, s:s}", "event", "started",
                             "rank", (json_int_t)rank->rank, "local_rank",
                             (json_int_t)rank->local_rank, "pid", (json_int_t)rank->pid,
                             "start_ticks", (json_int_t)rank->start_ticks, "device", rank->device,
                             "cgroup", agent->cgroup.folder, "boot_id", agent->boot_id));
}

static dt_status rank_start(dt_agent_rank *rank, dt_environment *environment, const char *engine,
                            const char *plan, dt_error *err)
{
    const char *const argv[] = {engine, "train", "--plan", plan, NULL};
    dt_agent *agent = rank->agent;
    int kept[DT_CLAIM_GPUS_MOST];
    dt_spawned spawned;
    dt_status st;

    dt_environment_set_int(environment, "RANK", rank->rank);
    dt_environment_set_int(environment, "LOCAL_RANK", rank->local_rank);
    if (rank->threads > 0)
        dt_environment_set_int(environment, "OMP_NUM_THREADS", rank->threads);
    rank->kernel_log = dt_kernel_log_open();
    DT_TRY(dt_spawn(&spawned, (char *const *)argv, environment->items,
                    &(dt_spawn_place){agent->cgroup.procs, agent->ranks_mask, kept,
                                      dt_agent_claims_of(kept, rank)},
                    err));
    note_started(rank, &spawned);
    DT_TRY(dt_agent_rank_follow(rank, spawned.channel, spawned.out, spawned.err, err));
out:
    return st;
}

/* --- the programs of a command */

static void send_report(void *context, json_t *event)
{
    dt_agent_rank *rank = context;

    if (strcmp(json_string_value(json_object_get(event, "event")), "failed") == 0)
        rank->failed_first = strcmp(json_string_value(json_object_get(event, "status")),
                                    dt_status_name(DT_ERR_PEER)) != 0;
    json_object_set_new(event, "rank", json_integer(rank->rank));
    dt_journal_add(&rank->agent->journal, event);
}

static void send_warning(void *context, const char *text)
{
    dt_strbuf line;

    dt_strbuf_init(&line);
    dt_strbuf_add_str(&line, "warning: ");
    dt_text_clean(&line, text, strlen(text), false);
    dt_agent_rank_log(context, "agent", line.data);
    dt_strbuf_release(&line);
}

/* Reports that the program cannot be started. */
static void refuse_program(dt_agent_rank *rank, const dt_error *why)
{
    dt_program_refused(rank->program, why);
    rank->refused = true;
}

/* Ends the start, unless a program still waits for the first look at its files. */
static void finish_start(dt_agent *agent)
{
    for (int64_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].look.running && agent->ranks[i].pid == 0)
            return;
    agent->starting = false;
    dt_journal_keep_head(&agent->journal);
}

/* Starts a program whose files were looked at, unless the ranks are being ended. */
static void start_program(dt_agent_rank *rank)
{
    dt_agent *agent = rank->agent;
    dt_error err = DT_ERROR_INIT;
    int kept[DT_CLAIM_GPUS_MOST];
    dt_spawn_program command;
    dt_spawned spawned;

    if (agent->ending != DT_ENDING_NO)
        return;
    rank->kernel_log = dt_kernel_log_open();
    if (dt_program_command(&command, rank->program, &agent->environment, &err) != DT_OK) {
        refuse_program(rank, &err);
    } else if (dt_spawn_program_rank(&spawned, &command,
                                     &(dt_spawn_place){agent->cgroup.procs, agent->ranks_mask, kept,
                                                       dt_agent_claims_of(kept, rank)},
                                     &err) != DT_OK) {
        refuse_program(rank, &err);
    } else {
        dt_program_started(rank->program, spawned.pid);
        note_started(rank, &spawned);
        if (dt_agent_rank_follow_program(rank, spawned.channel, spawned.out, spawned.err, &err) !=
            DT_OK)
            dt_agent_rank_log(rank, "agent", err.message);
    }
}

static void on_first_look(dt_agent_rank *rank)
{
    start_program(rank);
    finish_start(rank->agent);
    rank->agent->ranks_changed(rank->agent);
}

void dt_agent_start_programs(dt_agent *agent, const json_t *values)
{
    dt_error err = DT_ERROR_INIT;

    if (agent->programs == NULL || !agent->starting || agent->programs->port_agreed)
        return;
    (void)dt_program_agree(agent->programs, values, &err);
    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];

        if (err.code != DT_OK)
            refuse_program(rank, &err);
        else if (rank->refused)
            continue;
        else if (dt_program_look_ms(rank->program) > 0)
            dt_agent_look(rank, on_first_look);
        else
            start_program(rank);
    }
    finish_start(agent);
    agent->ranks_changed(agent);
}

/* Opens the programs, and offers what their ranks exchange. */
static void meet(dt_agent *agent)
{
    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];
        char value[DT_PROGRAM_OFFER_SIZE] = "";
        dt_error err = DT_ERROR_INIT;

        if (dt_program_open(&rank->program, agent->programs, rank->rank,
                            &(dt_reports){send_report, send_warning, rank}, &err) != DT_OK ||
            dt_program_offer(value, agent->programs, rank->rank, &err) != DT_OK)
            refuse_program(rank, &err);
        else
            dt_agent_rendezvous_offer(rank, DT_PROGRAM_RENDEZVOUS, value);
    }
    agent->ranks_changed(agent);
}

/* Chooses the strongest means of this node to find and end the run's processes, and logs it
 * once. */
static void means_find(dt_agent *agent, int64_t node)
{
    dt_error err = DT_ERROR_INIT;
    dt_strbuf name, words;

    dt_strbuf_init(&name);
    dt_strbuf_init(&words);
    dt_strbuf_add_fmt(&name, "%.64s-%lld-%lld-%d", agent->run, (long long)agent->attempt,
                      (long long)node, (int)getpid());
    if (dt_cgroup_make(&agent->cgroup, name.data, &err) == DT_OK)
        dt_strbuf_add_fmt(&words, "the ranks are in the cgroup '%s'", agent->cgroup.folder);
    else
        dt_strbuf_add_fmt(
            &words,
            "no cgroup for the ranks (%s): their processes are found by parent and environment",
            err.message);
    agent->oom_kills = dt_cgroup_oom_kills(&agent->cgroup);
    dt_agent_log(agent, words.data);
    dt_strbuf_release(&name);
    dt_strbuf_release(&words);
}

/* Finds CUDA_VISIBLE_DEVICES of the ranks, from `start` or from this process. */
static void visible_find(dt_agent *agent)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES=";

    for (size_t i = 0; i < agent->environment.count; i++)
        if (strncmp(agent->environment.items[i], name, strlen(name)) == 0)
            agent->devices_visible = dt_strdup(agent->environment.items[i] + strlen(name));
}

/* Reports that a run of somebody else has a GPU of the ranks. */
static void refuse_ranks(dt_agent *agent, const dt_claim_holder *holder, int64_t gpu)
{
    agent->starting = false;
    for (int64_t i = 0; i < agent->rank_count; i++)
        dt_agent_rank_refused(&agent->ranks[i], gpu, holder->who);
    dt_agent_end_other_ranks(agent);
    dt_agent_ending_advance(agent);
}

static void start_ranks(dt_agent *agent)
{
    dt_claim_holder holder;
    dt_strbuf plan;
    int64_t gpu;

    if (!dt_agent_claims_take(agent, &holder, &gpu)) {
        refuse_ranks(agent, &holder, gpu);
        return;
    }
    dt_agent_system_watch_gpus(agent);
    if (agent->programs != NULL) {
        meet(agent);
        return;
    }
    dt_strbuf_init(&plan);
    dt_strbuf_add_fmt(&plan, "%s/plan.json", agent->folder);
    agent->starting = false;
    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_error problem = DT_ERROR_INIT;

        if (rank_start(&agent->ranks[i], &agent->environment, agent->engine, plan.data, &problem) ==
            DT_OK)
            continue;
        dt_log_error("rank %lld: %s", (long long)agent->ranks[i].rank, problem.message);
        dt_agent_rank_not_started(&agent->ranks[i], problem.message);
        dt_agent_end_other_ranks(agent);
        break;
    }
    /* Keep the `started` events: another agent needs them to end the ranks. */
    dt_journal_keep_head(&agent->journal);
    dt_strbuf_release(&plan);
}

dt_status dt_agent_start(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    dt_strbuf plan;
    layout world;
    dt_status st;

    dt_strbuf_init(&plan);
    if (agent->started)
        return DT_OK; /* a restarted supervisor repeats the command */
    if (agent->ending != DT_ENDING_NO)
        return DT_FAIL(err, DT_ERR_BUSY, "start: this node is being stopped");
    DT_TRY(layout_read(&world, agent, command->plan, err));
    dt_strbuf_add_fmt(&plan, "%s/plan.json", agent->folder);
    DT_TRY(plan_write(plan.data, command->plan, err));
    if (dt_program_is_planned(command->plan))
        DT_TRY(dt_program_plan_open(&agent->programs, command->plan, err));
    else if (command->engine[0] == '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "start: 'engine' is empty, but the plan needs one");
    DT_TRY(ranks_read(agent, &world, command->node, err));
    environment_for_node(&agent->environment, agent, &world, command);
    visible_find(agent);
    agent->engine = dt_strdup(command->engine);
    agent->owner = dt_strdup(command->owner);
    means_find(agent, command->node);
    dt_agent_lease_begin(agent, command);
    dt_agent_cache_pins_take(agent, command);
    agent->started = agent->starting = true;
    dt_agent_system_begin(agent, command->plan);
    dt_agent_memory_before(agent, start_ranks);
out:
    dt_strbuf_release(&plan);
    return st;
}
