/* cache_pins: marks the ranks' programs, libraries and data, and the agent's own file, as in use while the
 * agent runs (node_setup/remote_helper/remote_helper.h), so that another machine with the same home directory does
 * not remove them.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "runner/agent/agent_int.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

static void mark(dt_agent *agent, const char *cache, const char *path)
{
    dt_error err = DT_ERROR_INIT;
    char *made;

    if (dt_cache_pin(&made, cache, path, &err) != DT_OK)
        dt_log_warn("%s", err.message); /* the file's age still protects it */
    if (made == NULL)
        return;
    agent->cache_pins =
        dt_realloc(agent->cache_pins, agent->cache_pin_count + 1, sizeof(agent->cache_pins[0]));
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
