/* sim: simulates a launch machine and its nodes in one process, with a virtual clock and network.
 *
 * Supervisor, agents, bridges and commands are the real programs' code; each runs as a task (with its own stack) of
 * a virtual process on a virtual machine. Their calls to libc, libuv and SQLite's file layer are answered here (see the
 * table in README.md). One thread, no system clock: a schedule is a function of its seed.
 *
 *   task.c      time, tasks, randomness          fs.c       the files of a machine
 *   proc.c      processes and their signals      vfs.c      the same files, for SQLite
 *   pipe.c      channels between processes       uv_*.c     libuv's loops
 *   fd.c        their descriptors                libc_*.c   the wrapped calls
 *   net.c       launch machine to nodes          socket.c   sockets with a name
 *   program.c   supervisor, agent, bridge        spawn.c    ranks, and an agent's view of /proc
 *   engine.c    ranks that train                 node.c     preparation of nodes
 *   command.c   what people type                 fault.c    random faults
 *   check.c     what must hold                   main.c     many schedules
 *   memory.c    memory of a world                opened.c   connections that know the schema
 *
 * Units      nanoseconds (_ns) of the world's clock, which begins at SIM_BEGIN_NS
 * Ownership  everything lives until the world ends (memory.c), except what the programs free
 */
#ifndef DT_SIM_H
#define DT_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"

#define SIM_MS       ((int64_t)1000000)
#define SIM_SECOND   ((int64_t)1000000000)
#define SIM_NEVER    INT64_MAX
#define SIM_BEGIN_NS (1000 * SIM_SECOND)

enum { SIM_MACHINES = 33, SIM_FDS = 256, SIM_SHM_BYTES = 32768 };

typedef struct sim_task sim_task;
typedef struct sim_event sim_event;
typedef struct sim_proc sim_proc;
typedef struct sim_machine sim_machine;
typedef struct sim_end sim_end;
typedef struct sim_inode sim_inode;
typedef struct sim_loop sim_loop;
typedef struct sim_engine sim_engine;
typedef void sim_fn(void *context);

/* --- memory.c */
void sim_memory_begin(void); /* all memory allocated from now on is freed at the end */
void sim_memory_end(void);
/* Begins a contiguous region at the returned address; memory allocated before stays, in all worlds. */
void *sim_memory_slice(void);
void *sim_alloc(size_t bytes);              /* zeroed */
void *sim_keep(void *memory, size_t bytes); /* like realloc; outlives the world */

/* --- task.c */
extern int64_t sim_now_ns;
extern sim_task *sim_running; /* NULL: the world itself acts */

void sim_world_begin(uint64_t seed, int64_t turns);
char *sim_print(const char *fmt, ...) DT_PRINTF(1, 2);

uint64_t sim_draw(void);
int64_t sim_between(int64_t low, int64_t high); /* inclusive */
bool sim_chance(double probability);

sim_event *sim_at(int64_t when_ns, sim_fn *fn, void *context);
void sim_cancel(sim_event *event); /* accepts NULL; not after the event */
/* Runs until the time `when_ns`, until `over` returns true, or until the world has used all its turns. */
void sim_run_until(int64_t when_ns, bool (*over)(void));
int64_t sim_turns_left(void);

sim_task *sim_task_start(sim_proc *proc, sim_fn *fn, void *context);
void sim_task_drop(sim_task *task); /* never runs again; a running task ends at its next wait */
bool sim_task_is_over(const sim_task *task);
void sim_task_wake(sim_task *task);
void sim_task_hold(sim_task *task, bool hold); /* while its process is stopped */
/* Suspends the running task until it is woken (possibly without a reason), or until the time. */
void sim_wait(int64_t until_ns);
void sim_sleep(int64_t ns);

/* --- proc.c */
typedef enum sim_fd_kind {
    SIM_FD_NONE,
    SIM_FD_NULL,
    SIM_FD_FILE,
    SIM_FD_END,
    SIM_FD_LISTENER
} sim_fd_kind;

typedef struct sim_listener {
    sim_machine *machine;
    const char *path;
    sim_end *waiting[16];
    int count;
    bool closed;
    sim_proc *proc;
} sim_listener;

typedef struct sim_fd {
    sim_fd_kind kind;
    sim_inode *inode;
    int64_t offset;
    bool append, nonblocking, locks;
    sim_end *end;
    sim_listener *listener;
    int64_t patience_ns; /* timeout of a read; 0: none */
} sim_fd;

enum { SIM_TASKS = 64 };

struct sim_proc {
    sim_proc *next, *parent;
    sim_machine *machine;
    const char *name;
    int pid;
    int64_t start_ticks;
    bool over, buried, paused;
    bool dying; /* killed, but not gone yet */
    int wait_status;
    const char *mark;      /* DTRUN_NODE_DIR=... of a rank */
    int64_t attempt, rank; /* of a rank */
    int64_t woken_ns;      /* end of its last pause; 0: never paused */
    /* Of an agent: since when the run has ended and it has no ranks; 0: not so. */
    int64_t idle_since_ns;
    sim_task *tasks[SIM_TASKS];
    int task_count;
    sim_fd fds[SIM_FDS];
    int fd_count; /* all descriptors are below */
    char cwd[512];
    int ready_fd;
    sim_loop *loop; /* the loop that gets its signals */
    sim_engine *engine;
    void (*ended)(sim_proc *proc, void *context); /* called once; the code is wait_status */
    void *ended_context;
    void (*on_over)(sim_proc *proc, void *context); /* called by the world, before `ended` */
    void *on_over_context;
    int (*main)(sim_proc *proc);
    const char *const *argv;
};

struct sim_machine {
    int number; /* 0: the launch machine */
    const char *name;
    sim_inode *files[512];
    int file_count;
    int64_t wall_offset_ms;
    char boot_id[40];
    int next_pid;
    sim_proc *procs;
    bool down;             /* it is booting */
    bool troubled;         /* it was unreachable at some time */
    bool wiped;            /* it lost the run's folder at some time */
    int64_t full_until_ns; /* its disk is full until then */
    int64_t slow_until_ns;
    int64_t slow_ns; /* longest duration of a sync while the disk is slow */
    /* Cuts between it and the launch machine, and between it and the other nodes. */
    int64_t cut_until_ns, peers_cut_until_ns;
    int64_t closed_until_ns; /* logins are refused until then */
};

typedef struct sim_world {
    uint64_t seed;
    sim_machine machines[SIM_MACHINES];
    int machine_count;
    int64_t alive; /* processes */
    bool trace;
} sim_world;
extern sim_world sim;

/* Returns the running process; NULL for the world. */
sim_proc *sim_self(void);
sim_proc *sim_proc_start(sim_machine *machine, sim_proc *parent, const char *name,
                         int (*entry)(sim_proc *), const char *const *argv);
void sim_proc_exit(sim_proc *proc, int wait_status);
void sim_proc_signal(sim_proc *proc, int number);
sim_proc *sim_proc_find(sim_machine *machine, int pid); /* living, or a zombie */
void sim_machine_reboot(sim_machine *machine, bool power_loss);
void sim_trace(const char *fmt, ...) DT_PRINTF(1, 2);

/* --- pipe.c: one end of a two-way channel */
struct sim_end {
    sim_end *peer;
    dt_strbuf bytes; /* to be read at this end */
    size_t taken;    /* bytes already read */
    bool eof, closed;
    int holders;
    sim_loop *loop; /* the loop that reads it */
    sim_task *reader;
    struct sim_path *path; /* the network between the ends; NULL: none */
    sim_fn *heard;         /* called instead, if the reader is not a program */
    void *heard_context;
};
void sim_pair(sim_end *ends[2]);
void sim_end_deliver(sim_end *end, const void *bytes, size_t length, bool eof);
size_t sim_end_waiting(const sim_end *end);
size_t sim_end_read(sim_end *end, void *bytes, size_t most);
bool sim_end_write(sim_end *end, const void *bytes, size_t length); /* false: nobody can read it */
void sim_end_shut(sim_end *end);    /* no more bytes will be written */
void sim_end_release(sim_end *end); /* by one holder */

/* --- fd.c */
int sim_fd_new(sim_proc *proc, sim_fd_kind kind);
sim_fd *sim_fd_get(int fd); /* of the running process; NULL with errno */
void sim_fd_close(sim_proc *proc, int fd);
sim_end *sim_fd_end(sim_proc *proc, int fd);

/* --- fs.c: paths are absolute, or relative to the running process's folder */
struct sim_inode {
    char *path; /* NULL: removed */
    uint32_t hash;
    uint64_t number;
    bool folder;
    unsigned mode;
    char *data;
    int64_t length, capacity;
    int64_t synced; /* bytes safe in a power loss; of the rest a random part is lost */
    sim_proc *lock_proc;
    int lock_fd;
    /* used by SQLite (vfs.c) */
    struct sim_db *dbs;
    char *shm[8]; /* SIM_SHM_BYTES each */
};
sim_machine *sim_machine_self(void); /* the launch machine for the world */
const char *sim_fs_resolve(char *out, size_t size, const char *path);
bool sim_fs_is_below(const char *path, const char *folder);
sim_inode *sim_fs_find(sim_machine *machine, const char *path);
sim_inode *sim_fs_make(sim_machine *machine, const char *path, bool folder);
void sim_fs_remove(sim_machine *machine, sim_inode *inode);
bool sim_fs_write(sim_machine *machine, sim_inode *inode, int64_t offset, const void *bytes,
                  int64_t length); /* false: the disk is full */
void sim_fs_cut(sim_inode *inode, int64_t length);
void sim_fs_sync(sim_machine *machine, sim_inode *inode); /* may take long */
void sim_fs_power_loss(sim_machine *machine);
void sim_fs_put(sim_machine *machine, const char *path, const char *text);
sim_listener *sim_listener_find(sim_machine *machine, const char *path);
void sim_listener_add(sim_listener *listener);

/* --- vfs.c */
void sim_vfs_install(void);
void sim_vfs_drop(sim_proc *proc); /* drops the locks of a process that has ended */
/* Makes SQLite's open file that inode, for the running process. */
void sim_vfs_take(void *file, sim_inode *inode);

/* --- opened.c */
void sim_opened_prepare(void); /* in a world with an empty store, before all others */
void sim_opened_begin(void);   /* in a new world: makes all connections available again */

/* --- uv_loop.c, uv_handle.c, uv_pipe.c */
void sim_loop_wake(sim_loop *loop);
bool sim_loop_signal(sim_loop *loop, int number); /* false: it does not handle it */
struct uv_process_s;
void sim_loop_exited(struct uv_process_s *process, int64_t code, int number);

/* --- net.c */
typedef struct sim_path {
    sim_machine *machine;
    bool dead; /* half open: neither side notices */
} sim_path;
/* Returns true if the launch machine and that machine can reach each other now. */
bool sim_net_open(const sim_machine *machine);
void sim_net_send(sim_end *from, const void *bytes, size_t length, bool eof);
/* `sim-reach NODE run|probe WORD...` as a process on the launch machine. */
sim_proc *sim_net_reach(sim_proc *parent, const char *const *argv, sim_end *channel,
                        sim_end *problems);
void sim_net_break(sim_machine *machine, bool half_open); /* breaks the present connections */
void sim_net_forget(void);                                /* in a new world */

/* --- programs: main functions of processes; argv as on a command line */
int sim_program_supervise(sim_proc *proc);
int sim_program_agent(sim_proc *proc);

/* --- engine.c */
void sim_engine_begin(sim_proc *proc, const char *const *environment, const char *plan_path,
                      sim_end *channel, sim_end *out, sim_end *err);
void sim_engine_signal(sim_engine *engine, int number);
void sim_engine_ended(sim_engine *engine); /* its process has ended */
void sim_engines_forget(void);
bool sim_engines_train(void); /* an attempt is making steps */

typedef struct sim_activity {
    char state;
    double cpu_seconds;
} sim_activity;
sim_activity sim_engine_activity(const sim_engine *engine, bool paused);

/* --- command.c, fault.c, check.c */
#include "tests/sim/schedule.h"

#endif
