/* net: simulates the network from the launch machine to its nodes; replaces `dtrun-reach` and ssh.
 *
 * Bytes arrive in order, after a random delay; while the network is cut they wait, like the bytes of TCP. A half-open
 * connection loses all bytes, without an error at either end.
 */
#include <signal.h>
#include <string.h>

#include <sys/wait.h>

#include "runner/transport/transport.h"
#include "tests/sim/sim.h"

#define PATIENCE_NS (10 * SIM_SECOND) /* timeout of connecting to a machine that does not answer */
#define PROBE_NS    (9 * SIM_SECOND)
#define ALONE_NS    (45 * SIM_SECOND)
/* net.ipv4.tcp_keepalive_time and nine probes */
#define KEEPALIVE_NS (7875 * SIM_SECOND)

typedef struct segment {
    struct segment *next;
    size_t length;
    bool eof;
    char bytes[];
} segment;

/* One direction of a connection. */
typedef struct lane {
    sim_end *to;
    sim_path *path;
    segment *first, **last;
    bool moving;
} lane;

typedef struct reach {
    struct reach *next;
    sim_path path;
    sim_machine *machine;
    sim_proc *client, *remote;
    sim_end *channel, *problems;
    lane lanes[3]; /* to the node, from it, and its stderr */
    const char *const *words;
    bool probe;
    int code;
} reach;

static reach *reaches;

bool sim_net_open(const sim_machine *machine)
{
    return machine->number == 0 || (!machine->down && machine->cut_until_ns <= sim_now_ns);
}

/* --- bytes in transit */

static void move(void *context)
{
    lane *one = context;
    segment *first = one->first;

    if (!sim_net_open(one->path->machine)) {
        sim_at(one->path->machine->down ? sim_now_ns + SIM_SECOND
                                        : one->path->machine->cut_until_ns,
               move, one);
        return;
    }
    one->moving = false;
    if (one->path->dead)
        return;
    one->first = first->next;
    if (one->first == NULL)
        one->last = &one->first;
    else {
        one->moving = true;
        sim_at(sim_now_ns, move, one);
    }
    sim_end_deliver(one->to, first->bytes, first->length, first->eof);
}

static void send_on(lane *one, const void *bytes, size_t length, bool eof)
{
    segment *made = sim_alloc(sizeof(*made) + length);

    made->length = length;
    made->eof = eof;
    memcpy(made->bytes, bytes, length);
    *one->last = made;
    one->last = &made->next;
    if (!one->moving) {
        one->moving = true;
        sim_at(sim_now_ns + sim_between(SIM_MS / 10, 20 * SIM_MS), move, one);
    }
}

static reach *find_reach(const sim_path *path)
{
    for (reach *each = reaches; each != NULL; each = each->next)
        if (&each->path == path)
            return each;
    return NULL;
}

/* The client's side has ended, and the other side does not answer: the client ends after the
 * time that ssh would wait. */
static void on_alone(void *context)
{
    reach *one = context;

    if (one->client != NULL)
        sim_proc_exit(one->client, 255 << 8);
}

void sim_net_send(sim_end *from, const void *bytes, size_t length, bool eof)
{
    reach *through = find_reach(from->path);

    if (through == NULL)
        return;
    if (eof && through->lanes[0].to == from->peer)
        sim_at(sim_now_ns + ALONE_NS, on_alone, through);
    if (from->path->dead)
        return;
    for (int i = 0; i < 3; i++)
        if (through->lanes[i].to == from->peer) {
            send_on(&through->lanes[i], bytes, length, eof);
            return;
        }
}

/* --- the life of the client */

/* The client was killed or has finished: this side sees the end of file at once. */
static void on_client_over(sim_proc *client, void *context)
{
    reach *ended = context;
    sim_end *near = ended->channel != NULL ? ended->channel->peer : NULL;

    ended->client = NULL;
    if (ended->lanes[1].to != NULL)
        sim_end_deliver(ended->lanes[1].to, "", 0, true);
    if (near != NULL && !near->closed && ended->remote != NULL)
        send_on(&ended->lanes[0], "", 0, true);
    if (ended->lanes[2].to != NULL)
        sim_end_deliver(ended->lanes[2].to, "", 0, true);
}

static void on_remote_gone(void *context)
{
    reach *one = context;

    if (one->client == NULL || one->path.dead)
        return;
    if (!sim_net_open(one->machine)) {
        sim_at(sim_now_ns + SIM_SECOND, on_remote_gone, one);
        return;
    }
    sim_proc_exit(one->client, one->code << 8);
}

static void on_remote_ended(sim_proc *remote, void *context)
{
    reach *one = context;

    one->remote = NULL;
    one->code = WIFSIGNALED(remote->wait_status) ? 255 : remote->wait_status >> 8;
    sim_at(sim_now_ns + 30 * SIM_MS, on_remote_gone, one);
}

static void fail(reach *one, const char *why)
{
    if (one->problems != NULL)
        sim_end_deliver(one->problems->peer, why, strlen(why), false);
    sim_proc_exit(one->client, 255 << 8);
}

static void on_answer(void *context)
{
    reach *one = context;
    bool closed = one->machine->closed_until_ns > sim_now_ns;

    if (one->client == NULL)
        return;
    if (!sim_net_open(one->machine))
        sim_proc_exit(one->client, DT_CONTACT_NONE << 8);
    else
        sim_proc_exit(one->client, (closed ? DT_CONTACT_HOST : DT_CONTACT_COMMAND) << 8);
}

static void on_connected(void *context)
{
    reach *one = context;

    if (one->client == NULL)
        return;
    if (!sim_net_open(one->machine)) {
        fail(one, "the machine does not answer\n");
        return;
    }
    if (one->machine->closed_until_ns > sim_now_ns) {
        fail(one, "Permission denied (publickey)\n");
        return;
    }
    one->remote = sim_proc_start(one->machine, NULL, one->words[1], sim_program_agent, one->words);
    one->remote->ended = on_remote_ended;
    one->remote->ended_context = one;
    for (int fd = 0; fd < 2 && one->channel != NULL; fd++) {
        one->remote->fds[fd] = (sim_fd){.kind = SIM_FD_END, .end = one->channel};
        one->channel->holders++;
    }
    if (one->problems != NULL) {
        one->remote->fds[2] = (sim_fd){.kind = SIM_FD_END, .end = one->problems};
        one->problems->holders++;
    }
    if (one->channel != NULL)
        one->channel->holders--;
    if (one->problems != NULL)
        one->problems->holders--;
}

static sim_machine *machine_named(const char *name)
{
    for (int i = 0; i < sim.machine_count; i++)
        if (strcmp(sim.machines[i].name, name) == 0)
            return &sim.machines[i];
    DT_ASSERT(false && "no such machine");
    return NULL;
}

static lane lane_to(sim_end *to, sim_path *path)
{
    return (lane){.to = to, .path = path};
}

static const char *const *copy_words(const char *const *argv)
{
    const char **words;
    int count = 0;

    while (argv[count] != NULL)
        count++;
    words = sim_alloc((size_t)(count + 1) * sizeof(words[0]));
    for (int i = 0; i < count; i++)
        words[i] = sim_print("%s", argv[i]);
    return words;
}

/* argv: sim-reach NODE MODE WORD... */
sim_proc *sim_net_reach(sim_proc *parent, const char *const *argv, sim_end *channel,
                        sim_end *problems)
{
    reach *one = sim_alloc(sizeof(*one));
    int64_t took = sim_between(20 * SIM_MS, 400 * SIM_MS);

    one->machine = machine_named(argv[1]);
    one->path.machine = one->machine;
    one->probe = strcmp(argv[2], "probe") == 0;
    one->words = copy_words(argv + 3);
    one->channel = channel;
    one->problems = problems;
    one->lanes[0] = lane_to(channel, &one->path);
    one->lanes[1] = lane_to(channel != NULL ? channel->peer : NULL, &one->path);
    one->lanes[2] = lane_to(problems != NULL ? problems->peer : NULL, &one->path);
    for (int i = 0; i < 3; i++)
        one->lanes[i].last = &one->lanes[i].first;
    if (channel != NULL) {
        channel->holders++;
        if (one->machine->number != 0)
            channel->path = channel->peer->path = &one->path;
    }
    if (problems != NULL) {
        problems->holders++;
        if (one->machine->number != 0)
            problems->path = &one->path;
    }
    one->next = reaches;
    reaches = one;
    one->client = sim_proc_start(parent->machine, parent, "reach", NULL, one->words);
    one->client->on_over = on_client_over;
    one->client->on_over_context = one;
    if (one->probe)
        sim_at(sim_now_ns + (sim_net_open(one->machine) ? took : PROBE_NS), on_answer, one);
    else
        sim_at(sim_now_ns + (sim_net_open(one->machine) ? took : PATIENCE_NS), on_connected, one);
    return one->client;
}

/* The keepalive probes of TCP have failed, on both machines. */
static void on_given_up(void *context)
{
    reach *one = context;

    if (one->channel != NULL)
        sim_end_deliver(one->channel, "", 0, true);
    if (one->client != NULL)
        sim_proc_exit(one->client, 255 << 8);
}

void sim_net_break(sim_machine *machine, bool half_open)
{
    for (reach *each = reaches; each != NULL; each = each->next) {
        if (each->machine != machine)
            continue;
        if (half_open && !each->path.dead) {
            each->path.dead = true;
            sim_at(sim_now_ns + KEEPALIVE_NS, on_given_up, each);
        }
        if (!half_open && each->client != NULL)
            sim_proc_signal(each->client, SIGKILL);
    }
}

void sim_net_forget(void)
{
    reaches = NULL;
}
