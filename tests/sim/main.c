/* main: runs many schedules, each from its seed.
 *
 *   sim [--base N] [--count N] [--jobs N]   schedules N, N+1, ...; exit 1 if one breaks a promise
 *   sim --seed N [--trace]                  one schedule, with a trace
 *   ... --profile calm|quiet|rough|mixed|channel|damage|crossed
 *   ... --until-broken                       ends at the first broken promise
 *   sim --seeds FILE                         the schedules listed in the file, each with its profile
 *
 * Schedules run in processes of CHUNK schedules each: real memory that killed virtual processes held is freed with the
 * process, and a crash costs one schedule.
 */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "runner/times.h"
#include "store/run.h"
#include "store/store.h"
#include "tests/sim/sim.h"

enum { CHUNK = 250, JOBS_MOST = 64, REPORTED_MOST = 20 };

/* A schedule that exceeds one of these counts as broken; the summary shows the longest of a series. */
#define LIMIT_NS      (30 * 3600 * SIM_SECOND)
#define LIMIT_TURNS   600000
#define LIMIT_SECONDS 60 /* of processor time: stops a loop that takes no turns */

static char *empty_store; /* the store that every world begins with, made in a first world */
static int64_t empty_store_bytes;

static void make_machine(int number)
{
    sim_machine *machine = &sim.machines[number];

    *machine = (sim_machine){.number = number, .next_pid = 1000 + 10000 * number};
    machine->name = number == 0 ? "localhost" : sim_print("node%d", number);
    machine->wall_offset_ms = number == 0 ? 0 : sim_between(-5000, 5000);
    snprintf(machine->boot_id, sizeof(machine->boot_id), "boot-%d", number);
    sim_fs_make(machine, "/", true);
    sim_fs_put(machine, "/proc/sys/kernel/random/boot_id", machine->boot_id);
    sim_fs_make(machine, "/cache", true);
}

static void make_world(uint64_t seed, int64_t turns)
{
    sim_world_begin(seed, turns);
    sim_listener_add(NULL);
    sim_vfs_drop(NULL);
    sim_opened_begin();
    sim_net_forget();
    sim_engines_forget();
    sim.seed = seed;
    sim.machine_count = 0;
    sim.alive = 0;
    schedule = (sim_schedule){0};
    /* runs are short here; drawn from the seed itself, so that schedules stay the same */
    ((dt_time_limits *)(uintptr_t)dt_times())->grow_first_seconds = (double)(seed % 30);
    sim_check_begin();
}

static void draw_run(sim_profile profile)
{
    double size = (double)(sim_draw() % 1000) / 1000;

    schedule.nodes = size < 0.5    ? 1
                     : size < 0.85 ? 2
                     : size < 0.97 ? sim_between(3, 4)
                                   : sim_between(5, 32);
    schedule.ranks_per_node = sim_between(1, 2);
    schedule.first_here = sim_chance(0.4);
    schedule.steps = sim_between(5, 30);
    schedule.save_every = sim_between(3, 12);
    schedule.step_ns = sim_between(SIM_SECOND / 5, 2 * SIM_SECOND);
    schedule.save_ns = sim_between(SIM_SECOND / 10, 2 * SIM_SECOND);
    schedule.grace_seconds = (double)sim_between(5, 30);
    schedule.hang_seconds = 30;
    schedule.max_restarts = sim_between(1, 5);
    schedule.nodes_min =
        schedule.nodes > 1 && sim_chance(0.3) ? sim_between(1, schedule.nodes - 1) : 0;
    schedule.launcher_lost = "continue";
    if (sim_chance(0.15)) { /* steps and saves that last longer than most faults */
        schedule.step_ns = sim_between(2 * SIM_SECOND, 20 * SIM_SECOND);
        schedule.save_ns = sim_between(SIM_SECOND, 60 * SIM_SECOND);
    }
    if (profile == SIM_CHANNEL) {
        schedule.nodes = 2;
        schedule.ranks_per_node = 1;
        schedule.nodes_min = 0;
        schedule.first_here = false;
        schedule.steps = 19 * 60;
        schedule.step_ns = 60 * SIM_SECOND;
        schedule.save_every = 120;
        schedule.hang_seconds = 600;
    }
    for (int i = 0; i <= schedule.nodes; i++) {
        make_machine(i);
        sim.machine_count++;
    }
    sim_fs_make(&sim.machines[0], SIM_STATE, true);
    sim_fs_make(&sim.machines[0], SIM_STATE "/dtrun", true);
}

static void give_store(void)
{
    sim_inode *inode;

    if (empty_store == NULL)
        return;
    inode = sim_fs_make(&sim.machines[0], SIM_STATE "/dtrun/store.db", false);
    sim_fs_write(&sim.machines[0], inode, 0, empty_store, empty_store_bytes);
    inode->synced = inode->length;
}

static int open_store(sim_proc *proc)
{
    dt_store *store = NULL;

    DT_ASSERT(dt_store_open(&store, NULL, NULL) == DT_OK);
    dt_store_close(store);
    return 0;
}

static void keep_store(void)
{
    const sim_inode *inode;

    make_world(0, LIMIT_TURNS);
    draw_run(SIM_CALM);
    sim_proc_start(&sim.machines[0], NULL, "open", open_store, NULL);
    sim_run_until(sim_now_ns + 60 * SIM_SECOND, NULL);
    inode = sim_fs_find(&sim.machines[0], SIM_STATE "/dtrun/store.db");
    empty_store_bytes = inode->length;
    empty_store = malloc((size_t)inode->length);
    memcpy(empty_store, inode->data, (size_t)inode->length);
}

static void open_stores(void)
{
    sim_memory_begin();
    make_world(0, LIMIT_TURNS);
    draw_run(SIM_CALM);
    give_store();
    sim_opened_prepare();
    sim_memory_end();
}

static bool is_over(void)
{
    return schedule.failure[0] != '\0' ||
           (schedule.ended && sim.alive == 0 && !schedule.resume_wanted);
}

static int64_t limit_turns(sim_profile profile)
{
    return profile == SIM_CHANNEL ? 20 * LIMIT_TURNS : LIMIT_TURNS;
}

/* Kills the process by SIGVTALRM if it loops without end. */
static void limit_processor(int64_t seconds)
{
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

static void run_schedule(uint64_t seed, sim_profile profile)
{
    limit_processor(profile == SIM_CHANNEL ? 60 : LIMIT_SECONDS);
    make_world(seed, limit_turns(profile));
    draw_run(profile);
    give_store();
    sim_trace("seed %llu: %lld nodes x %lld ranks, %lld steps", (unsigned long long)seed,
              (long long)schedule.nodes, (long long)schedule.ranks_per_node,
              (long long)schedule.steps);
    sim_command_launch();
    sim_command_watch();
    sim_faults_draw(profile);
    sim_run_until(SIM_BEGIN_NS + LIMIT_NS, is_over);
    if (sim_turns_left() == 0)
        sim_fail("the run has not ended after %lld turns", (long long)limit_turns(profile));
    if (schedule.failure[0] == '\0')
        sim_check_end();
    sim_trace("%s after attempt %lld: %s", dt_run_state_name((dt_run_state)schedule.state),
              (long long)schedule.attempt, schedule.reason);
}

/* --- many schedules */

typedef struct progress {
    _Atomic uint64_t seed;
    _Atomic uint64_t done, failed, points, virtual_seconds;
    _Atomic uint64_t most_turns, most_virtual_seconds; /* of one schedule */
    _Atomic uint64_t ends[DT_RUN_STATE_COUNT], attempts, harms, grown;
    char failure[1024];
} progress;

typedef struct worker {
    pid_t pid;
    uint64_t to;
    progress *shown;
} worker;

static struct {
    uint64_t base, count;
    int jobs;
    sim_profile profile;
    uint64_t reported, failed;
    bool until_broken;
} options = {.base = 1, .count = 100, .jobs = 2, .profile = SIM_MIXED};

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void work(progress *shown, uint64_t from, uint64_t to)
{
    uint64_t virtual_seconds, turns;

    for (uint64_t seed = from; seed < to; seed++) {
        shown->seed = seed;
        sim_memory_begin();
        run_schedule(seed, options.profile);
        sim_memory_end();
        shown->done++;
        virtual_seconds = (uint64_t)((sim_now_ns - SIM_BEGIN_NS) / SIM_SECOND);
        turns = (uint64_t)(limit_turns(options.profile) - sim_turns_left());
        shown->points += (uint64_t)schedule.points;
        shown->virtual_seconds += virtual_seconds;
        shown->most_turns = greater(shown->most_turns, turns);
        shown->most_virtual_seconds = greater(shown->most_virtual_seconds, virtual_seconds);
        shown->ends[schedule.state]++;
        shown->attempts += (uint64_t)schedule.attempt;
        shown->harms += (uint64_t)schedule.harms;
        shown->grown += (uint64_t)schedule.grown;
        if (schedule.failure[0] != '\0') {
            snprintf(shown->failure, sizeof(shown->failure), "%s", schedule.failure);
            _exit(1);
        }
    }
    _exit(0);
}

static void begin_chunk(worker *one, uint64_t from, uint64_t to)
{
    one->to = to;
    one->shown->seed = from;
    fflush(stdout);
    one->pid = fork();
    if (one->pid == 0)
        work(one->shown, from, to);
}

static const char *what_killed(const worker *one, int status)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM)
        return "the schedule exceeded its processor time";
    return WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : one->shown->failure;
}

/* Reports a schedule that broke a promise or crashed, and continues its chunk after it. */
static bool after(worker *one, int status)
{
    uint64_t seed = one->shown->seed;

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    options.failed++;
    if (options.reported++ < REPORTED_MOST)
        printf("seed %llu: %s\n", (unsigned long long)seed, what_killed(one, status));
    if (seed + 1 >= one->to || options.until_broken)
        return false;
    begin_chunk(one, seed + 1, one->to);
    return true;
}

static int run_many(void)
{
    uint64_t next = options.base, end = options.base + options.count;
    progress *shown = mmap(NULL, sizeof(*shown) * JOBS_MOST, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    worker workers[JOBS_MOST] = {{0}};
    uint64_t sums[7] = {0}, grown = 0, ends[DT_RUN_STATE_COUNT] = {0};
    struct timespec begun, ended;
    int running = 0, status;
    double seconds;

    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int i = 0; i < options.jobs && next < end; i++, running++) {
        workers[i].shown = &shown[i];
        begin_chunk(&workers[i], next, next + CHUNK < end ? next + CHUNK : end);
        next += CHUNK;
    }
    while (running > 0) {
        pid_t pid = wait(&status);

        for (int i = 0; i < options.jobs; i++) {
            if (workers[i].pid != pid || after(&workers[i], status))
                continue;
            workers[i].pid = 0;
            running--;
            if (next < end && (options.failed == 0 || !options.until_broken)) {
                begin_chunk(&workers[i], next, next + CHUNK < end ? next + CHUNK : end);
                next += CHUNK;
                running++;
            }
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    seconds =
        (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) * 1e-9;
    for (int i = 0; i < options.jobs; i++) {
        sums[0] += shown[i].done;
        sums[1] += shown[i].points;
        sums[2] += shown[i].virtual_seconds;
        sums[3] += shown[i].attempts;
        sums[4] += shown[i].harms;
        grown += shown[i].grown;
        sums[5] = greater(sums[5], shown[i].most_turns);
        sums[6] = greater(sums[6], shown[i].most_virtual_seconds);
        for (int s = 0; s < DT_RUN_STATE_COUNT; s++)
            ends[s] += shown[i].ends[s];
    }
    printf("%llu schedules in %.1f s (%.0f a minute): %llu finished, %llu failed, %llu stopped; "
           "%llu attempts, %llu of them grew; %llu faults that may end one, %llu points, %.1f days "
           "of virtual time; "
           "the longest took %llu turns, or %llu s; %llu broke a promise\n",
           (unsigned long long)sums[0], seconds, (double)sums[0] / seconds * 60,
           (unsigned long long)ends[DT_RUN_FINISHED], (unsigned long long)ends[DT_RUN_FAILED],
           (unsigned long long)ends[DT_RUN_STOPPED], (unsigned long long)sums[3],
           (unsigned long long)grown, (unsigned long long)sums[4], (unsigned long long)sums[1],
           (double)sums[2] / 86400, (unsigned long long)sums[5], (unsigned long long)sums[6],
           (unsigned long long)options.failed);
    return options.failed > 0;
}

static sim_profile profile_named(const char *name)
{
    static const char *const names[] = {"calm",    "quiet",  "rough",  "mixed",
                                        "channel", "damage", "crossed"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return (sim_profile)i;
    fprintf(stderr, "sim: no profile '%s'\n", name);
    exit(2);
}

/* Runs the schedules of a file with lines `PROFILE SEED WHAT`; # begins a comment. */
static int run_listed(const char *path)
{
    char line[512], profile[32];
    FILE *list = fopen(path, "re");
    unsigned long long seed;
    int broken = 0;

    if (list == NULL) {
        fprintf(stderr, "sim: cannot open '%s'\n", path);
        return 2;
    }
    while (fgets(line, sizeof(line), list) != NULL) {
        if (line[0] == '#')
            continue;
        DT_ASSERT(sscanf(line, "%31s %llu", profile, &seed) == 2);
        options.profile = profile_named(profile);
        options.base = seed;
        options.count = 1;
        broken |= run_many();
    }
    fclose(list);
    return broken;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"base", required_argument, NULL, 'b'},
                                          {"count", required_argument, NULL, 'c'},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"trace", no_argument, NULL, 't'},
                                          {"profile", required_argument, NULL, 'p'},
                                          {"until-broken", no_argument, NULL, 'u'},
                                          {"seeds", required_argument, NULL, 'l'},
                                          {NULL, 0, NULL, 0}};
    const char *listed = NULL;
    bool alone = false;
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'b':
        case 's':
            options.base = strtoull(optarg, NULL, 10);
            alone = alone || option == 's';
            break;
        case 'c':
            options.count = strtoull(optarg, NULL, 10);
            break;
        case 'j':
            options.jobs = (int)strtol(optarg, NULL, 10);
            break;
        case 'u':
            options.until_broken = true;
            break;
        case 'l':
            listed = optarg;
            break;
        case 't':
            sim.trace = true;
            break;
        case 'p':
            options.profile = profile_named(optarg);
            break;
        default:
            return 2;
        }
    }
    /* keeps freed memory in this process, since worlds come and go */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    clearenv();
    setenv("XDG_STATE_HOME", SIM_STATE, 1);
    setenv("HOME", "/", 1);
    setenv("DTRUN_LOG", "info",
           1); /* traced or not: what is logged is written, and takes its turn */
    sim_vfs_install();
    bool trace = sim.trace;
    sim.trace = false;
    keep_store();
    run_schedule(1, SIM_CALM); /* a first run, in which libraries make what they keep */
    open_stores();
    sim.trace = trace;
    if (listed != NULL)
        return run_listed(listed);
    if (!alone)
        return run_many();
    sim_memory_begin();
    run_schedule(options.base, options.profile);
    if (schedule.failure[0] != '\0')
        printf("seed %llu: %s\n", (unsigned long long)options.base, schedule.failure);
    return schedule.failure[0] != '\0';
}
