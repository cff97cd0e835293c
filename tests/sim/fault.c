/* fault: draws what goes wrong: which fault, when, where, for how long.
 *
 * A quiet fault is one that must not end anything, as docs/operations.md promises; it comes while the ranks train,
 * or at any time if it is marked `always`. The others come at any time, and each states how many attempts it can end
 * (harm). One fault in three waits for a critical moment: seconds before or after it, the fault would have no effect.
 */
#include <signal.h>
#include <string.h>

#include "store/store.h"
#include "tests/sim/sim.h"

#define HOUR_NS (3600 * SIM_SECOND)

typedef struct fault {
    struct fault *next; /* the next fault that waits */
    const struct kind *kind;
    sim_moment moment;
    int64_t skips; /* number of such moments to skip first */
    int64_t length_ns;
    sim_machine *machine;
} fault;

typedef void fault_fn(const fault *one);

typedef struct kind {
    const char *name;
    fault_fn *begin;
    double shortest, longest; /* seconds */
    int64_t harm;             /* 0: quiet */
    enum { ANYWHERE, NODE, LAUNCH } where;
    int weight;
    bool always;
} kind;

/* --- processes */

static sim_proc *find_process(sim_machine *machine, const char *name)
{
    sim_proc *found = NULL;
    int64_t seen = 0;

    for (sim_proc *each = machine->procs; each != NULL; each = each->next)
        if (!each->over && strcmp(each->name, name) == 0 && sim_between(0, seen++) == 0)
            found = each;
    return found;
}

static void kill_one(const fault *one, const char *name)
{
    sim_proc *found = find_process(one->machine, name);

    if (found != NULL)
        sim_proc_signal(found, SIGKILL);
}

static void go_on(void *context)
{
    sim_trace("%s[%d] continues", ((sim_proc *)context)->name, ((sim_proc *)context)->pid);
    sim_proc_signal(context, SIGCONT);
}

static void pause_one(const fault *one, const char *name)
{
    sim_proc *found = find_process(one->machine, name);

    if (found == NULL || found->paused)
        return;
    sim_proc_signal(found, SIGSTOP);
    sim_at(sim_now_ns + one->length_ns, go_on, found);
}

static void kill_supervisor(const fault *one)
{
    kill_one(one, "supervisor");
}

static void kill_bridge(const fault *one)
{
    kill_one(one, sim_chance(0.5) ? "reach" : "connect");
}

static void kill_agent(const fault *one)
{
    kill_one(one, "agent");
}

static void kill_rank(const fault *one)
{
    kill_one(one, "engine");
}

static void pause_supervisor(const fault *one)
{
    pause_one(one, "supervisor");
}

static void pause_agent(const fault *one)
{
    pause_one(one, "agent");
}

static void pause_rank(const fault *one)
{
    pause_one(one, "engine");
}

/* --- machines */

static void come_back(void *context)
{
    sim_trace("%s is back", ((sim_machine *)context)->name);
    ((sim_machine *)context)->down = false;
}

static void reboot(const fault *one)
{
    if (one->machine->down)
        return;
    one->machine->down = one->machine->troubled = true;
    sim_machine_reboot(one->machine, true);
    sim_at(sim_now_ns + one->length_ns, come_back, one->machine);
}

static void fill_disk(const fault *one)
{
    one->machine->full_until_ns = sim_now_ns + one->length_ns;
}

static void slow_disk(const fault *one)
{
    one->machine->slow_until_ns = sim_now_ns + one->length_ns;
    one->machine->slow_ns = sim_between(10 * SIM_MS, 4 * SIM_SECOND);
}

static void set_clock(const fault *one)
{
    one->machine->wall_offset_ms += sim_between(-3600000, 3600000);
}

/* --- the network */

static void later(int64_t *until, int64_t length)
{
    if (sim_now_ns + length > *until)
        *until = sim_now_ns + length;
}

/* Cuts only the connection to the launch machine: the ranks continue. */
static void cut_launch(const fault *one)
{
    later(&one->machine->cut_until_ns, one->length_ns);
    one->machine->troubled = true;
}

static void cut_all(const fault *one)
{
    cut_launch(one);
    later(&one->machine->peers_cut_until_ns, one->length_ns);
}

static void cut_every_node(const fault *one)
{
    for (int i = 1; i < sim.machine_count; i++)
        cut_launch(&(fault){.length_ns = one->length_ns, .machine = &sim.machines[i]});
}

static void half_open(const fault *one)
{
    sim_net_break(one->machine, true);
}

static void close_door(const fault *one)
{
    later(&one->machine->closed_until_ns, one->length_ns);
}

/* --- the store */

static int hold(sim_proc *proc)
{
    int64_t length = *(const int64_t *)(const void *)proc->argv;
    dt_store *store = NULL;

    if (dt_store_open(&store, NULL, NULL) == DT_OK && dt_store_begin(store, NULL) == DT_OK) {
        sim_sleep(length);
        dt_store_rollback(store);
    }
    dt_store_close(store);
    return 0;
}

static void hold_store(const fault *one)
{
    int64_t *length = sim_alloc(sizeof(*length));

    *length = one->length_ns;
    sim_proc_start(&sim.machines[0], NULL, "holder", hold, (const char *const *)(void *)length);
}

static void delete_below(sim_machine *machine, const char *folder)
{
    for (int i = machine->file_count - 1; i >= 0; i--)
        if (i < machine->file_count && sim_fs_is_below(machine->files[i]->path, folder))
            sim_fs_remove(machine, machine->files[i]);
}

static void delete_store(const fault *one)
{
    static const char *const names[] = {SIM_STATE "/dtrun/store.db",
                                        SIM_STATE "/dtrun/store.db-wal",
                                        SIM_STATE "/dtrun/store.db-shm"};

    schedule.damaged = true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        sim_inode *inode = sim_fs_find(one->machine, names[i]);

        if (inode != NULL)
            sim_fs_remove(one->machine, inode);
    }
}

static void wipe_node(const fault *one)
{
    schedule.damaged = true;
    one->machine->wiped = true;
    delete_below(one->machine, "/cache/runs/" SIM_RUN);
}

/* These come in addition to the others, and only in the profile `damage`. */
static const kind damages[] = {
    {"the store is deleted", delete_store, 0, 0, 0, LAUNCH, 2, true},
    {"a node loses its folder", wipe_node, 0, 0, 2, NODE, 1, true},
};

static const kind kinds[] = {
    {"the supervisor is killed", kill_supervisor, 0, 0, 0, LAUNCH, 4, true},
    {"the supervisor is paused", pause_supervisor, 1, 300, 0, LAUNCH, 3, false},
    {"a bridge is killed", kill_bridge, 0, 0, 0, ANYWHERE, 3, true},
    {"an agent is paused", pause_agent, 0.2, 15, 0, ANYWHERE, 2, false},
    {"a short cut", cut_all, 0.2, 9, 0, NODE, 3, false},
    {"a connection is half open", half_open, 0, 0, 0, NODE, 3, false},
    {"the launch machine's network is away", cut_every_node, 1, 2400, 0, NODE, 1, false},
    {"nobody may sign in", close_door, 1, 1500, 0, NODE, 2, false},
    {"the launch machine's disk is full", fill_disk, 0.5, 60, 0, LAUNCH, 2, false},
    {"a node's disk is full", fill_disk, 0.5, 60, 0, NODE, 2, false},
    {"a disk is slow", slow_disk, 1, 60, 0, ANYWHERE, 2, true},
    {"a clock is set", set_clock, 0, 0, 0, ANYWHERE, 2, true},
    {"the store is held", hold_store, 0.2, 90, 0, LAUNCH, 3, true},
    {"a rank is killed", kill_rank, 0, 0, 1, ANYWHERE, 3, false},
    {"a rank is stopped", pause_rank, 1, 600, 2, ANYWHERE, 1, false},
    {"an agent is killed", kill_agent, 0, 0, 1, ANYWHERE, 3, false},
    {"an agent hangs", pause_agent, 20, 200, 2, ANYWHERE, 2, false},
    {"a node is rebooted", reboot, 5, 120, 2, NODE, 2, false},
    {"the launch machine is rebooted", reboot, 5, 60, 2, LAUNCH, 2, false},
    {"a long cut", cut_all, 5, 600, 3, NODE, 2, false},
    {"a long cut from the launch machine", cut_launch, 5, 600, 3, NODE, 2, false},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* --- times */

/* Returns true if ranks of the launch machine cannot write events, since its disk is full, and
 * another node is cut off: no step is then a sign of life, and a healthy node may be given up. */
static bool is_mute(void)
{
    bool cut = false;

    for (int i = 1; i < sim.machine_count; i++)
        cut = cut || !sim_net_open(&sim.machines[i]);
    return schedule.first_here && cut && sim.machines[0].full_until_ns > sim_now_ns;
}

static void begin(void *context)
{
    int64_t harms = schedule.harms;
    const fault *one = context;

    if (one->kind->harm == 0 && !one->kind->always && !sim_engines_train()) {
        if (!schedule.ended)
            sim_at(sim_now_ns + SIM_SECOND, begin, context);
        return;
    }
    sim_trace("%s: %s, %.1f s", one->machine->name, one->kind->name, (double)one->length_ns * 1e-9);
    schedule.harms += one->kind->harm;
    schedule.troubled = true;
    later(&schedule.trouble_until_ns, one->length_ns);
    one->kind->begin(one);
    schedule.harms += is_mute() ? 2 : 0;
    if (schedule.harms > harms)
        later(&schedule.harm_until_ns, one->length_ns);
}

static const kind *draw_kind(bool quiet)
{
    int64_t sum = 0, at;

    for (int i = 0; i < KINDS; i++)
        sum += !quiet || kinds[i].harm == 0 ? kinds[i].weight : 0;
    at = sim_between(0, sum - 1);
    for (int i = 0; i < KINDS; i++) {
        at -= !quiet || kinds[i].harm == 0 ? kinds[i].weight : 0;
        if (at < 0)
            return &kinds[i];
    }
    return NULL;
}

/* Draws short faults more often than long ones. */
static int64_t draw_length(const kind *what)
{
    double from = what->shortest, to = what->longest, part = (double)sim_between(0, 1000) / 1000;

    return (int64_t)((from + (to - from) * part * part * part) * 1e9);
}

static fault *waiting; /* faults that wait for a moment */

static void wait_for_moment(fault *one)
{
    one->moment = (sim_moment)sim_between(0, SIM_MOMENTS - 1);
    one->skips =
        one->moment == SIM_A_LOG_GROWS ? sim_between(0, 60) : sim_between(0, 2) * sim_between(0, 2);
    one->next = waiting;
    waiting = one;
}

void sim_fault_moment(sim_moment moment)
{
    for (fault **at = &waiting, *one; (one = *at) != NULL;) {
        if (one->moment != moment || one->skips-- > 0) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        sim_at(sim_now_ns + sim_between(0, sim_chance(0.5) ? 100 * SIM_MS : 3 * SIM_SECOND), begin,
               one);
    }
}

static sim_machine *draw_machine(const kind *what)
{
    int first = schedule.first_here ? 0 : 1, last = (int)schedule.nodes + first - 1;

    if (what->where == LAUNCH)
        first = last = 0;
    else if (what->where == NODE)
        first = 1;
    return &sim.machines[sim_between(first, last)];
}

static void draw_fault(int64_t when, const kind *what)
{
    fault *one = sim_alloc(sizeof(*one));

    one->kind = what;
    one->length_ns = draw_length(one->kind);
    one->machine = draw_machine(what);
    if (sim_chance(1.0 / 3))
        wait_for_moment(one);
    else
        sim_at(when, begin, one);
}

static const kind *draw_possible(bool quiet)
{
    bool only_here = schedule.first_here && schedule.nodes == 1;
    const kind *what;

    do
        what = draw_kind(quiet);
    while (what->where == NODE && only_here);
    return what;
}

static void draw_damage(int64_t length)
{
    bool only_here = schedule.first_here && schedule.nodes == 1;

    for (int64_t i = sim_between(1, 2); i > 0; i--)
        draw_fault(sim_now_ns + sim_between(0, 2 * length),
                   &damages[only_here || sim_chance(0.6) ? 0 : 1]);
}

static void stop_time(void *context)
{
    sim_trace("a stop is asked for");
    sim_command_stop(context != NULL);
}

/* --- crossings: several faults within seconds of each other, most on one machine */

static bool may_be_on(const kind *what, const sim_machine *machine)
{
    return what->where == ANYWHERE || (what->where == LAUNCH) == (machine->number == 0);
}

static void cross(const fault *one)
{
    int64_t count = sim_between(2, 4), stops = sim_chance(0.6) ? sim_between(1, 2) : 0;
    bool quiet = sim_chance(0.5);

    for (int64_t i = 0; i < count; i++) {
        fault *each = sim_alloc(sizeof(*each));

        each->kind = draw_possible(quiet);
        each->length_ns = draw_length(each->kind);
        each->machine = may_be_on(each->kind, one->machine) && sim_chance(0.8)
                            ? one->machine
                            : draw_machine(each->kind);
        sim_at(sim_now_ns + sim_between(0, 3 * SIM_SECOND), begin, each);
    }
    for (int64_t i = 0; i < stops; i++)
        sim_at(sim_now_ns + sim_between(0, 4 * SIM_SECOND), stop_time,
               sim_chance(0.3) ? &sim : NULL);
}

static void draw_crossings(int64_t length)
{
    static const kind crossing = {"several at once", cross, 0, 0, 0, ANYWHERE, 1, true};

    for (int64_t i = sim_between(1, 2); i > 0; i--)
        draw_fault(sim_now_ns + sim_between(0, length), &crossing);
}

/* The status channel of a run that trains for 19 hours fails 25 times. */
static void draw_channel(void)
{
    static const kind ways[] = {
        {"the status channel times out", cut_launch, 10, 90, 0, NODE, 1, false},
        {"the status channel is half open", half_open, 0, 0, 0, NODE, 1, false},
        {"nobody may sign in", close_door, 60, 600, 0, NODE, 1, false},
        {"a bridge is killed", kill_bridge, 0, 0, 0, NODE, 1, false},
    };

    for (int64_t i = 0; i < 25; i++) {
        fault *one = sim_alloc(sizeof(*one));

        one->kind = &ways[i % 4];
        one->length_ns = draw_length(one->kind);
        one->machine = &sim.machines[sim_between(1, schedule.nodes)];
        sim_at(sim_now_ns + (i + 1) * 43 * 60 * SIM_SECOND, begin, one);
    }
}

void sim_faults_draw(sim_profile profile)
{
    int64_t length = schedule.steps * schedule.step_ns + 15 * SIM_SECOND, when = sim_now_ns;
    int64_t count;

    waiting = NULL;
    if (profile == SIM_CHANNEL) {
        draw_channel();
        return;
    }
    if (profile == SIM_MIXED)
        profile = sim_chance(0.1) ? SIM_CALM : sim_chance(0.4) ? SIM_QUIET : SIM_ROUGH;
    if (profile == SIM_CROSSED) {
        draw_crossings(length);
        schedule.resume_wanted = sim_chance(0.5);
        return;
    }
    if (profile == SIM_DAMAGE)
        draw_damage(length);
    count = profile == SIM_CALM ? 0 : sim_between(1, 4);
    for (int64_t i = 0; i < count; i++) {
        when += sim_between(0, 2 * length / count);
        draw_fault(when, draw_possible(profile == SIM_QUIET));
    }
    schedule.resume_wanted = profile != SIM_CALM && sim_chance(0.3);
    if (sim_chance(0.3))
        sim_at(sim_now_ns + sim_between(0, length + length / 4), stop_time,
               sim_chance(0.3) ? &sim : NULL);
}
