#include "engine/comm/peer.h"

#include <unistd.h>

#include "base/proc_stat.h"

dt_status dt_peer_self(dt_peer *out, dt_error *err)
{
    dt_proc_stat stat;

    if (!dt_proc_stat_read(&stat, getpid()))
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc/self/stat: mount /proc");
    *out = (dt_peer){.pid = getpid(), .start_ticks = stat.start_ticks};
    return DT_OK;
}

bool dt_peer_alive(const dt_peer *peer)
{
    dt_proc_stat stat;

    return dt_proc_stat_read(&stat, peer->pid) && stat.start_ticks == peer->start_ticks &&
           stat.state != 'Z' && stat.state != 'X';
}
