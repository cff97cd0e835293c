"""The agent reports in words how a rank died, and keeps the kernel's message about it."""
import os, signal, time
from agent_talk import Agent, check


def death(environment, number=None):
    agent = Agent()
    agent.connect()
    agent.start(1, dict({'FAKE_STEP_MS': '5', 'FAKE_STEPS': '100000'}, **environment))
    pid = agent.wait('started')['pid']
    if number is not None:
        agent.wait('metrics', step=3)
        os.kill(pid, number)
    exited = agent.wait('exited')
    agent.wait('released', left=[])
    agent.send(command='bye')
    agent.disconnect()
    return exited, pid


exited, pid = death({}, signal.SIGKILL)
check(exited['words'] == 'killed by signal 9 (SIGKILL, Killed)', f'{exited}')
check(exited['signal'] == 9 and exited['kernel_lines'] == [], f'{exited}')
exited, pid = death({'FAKE_MODE': 'crash'})
check(exited['words'] == 'exited with code 1' and exited['kernel_lines'] == [], f'{exited}')
check('the last words of rank 0' in exited['lines'], f'{exited}')
try:  # (the kernel's log has the process ids of the outermost namespace)
    logged = os.readlink('/proc/self/ns/pid') == 'pid:[4026531836]' and os.read(os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK), 8192) != b'' and \
        open('/proc/sys/debug/exception-trace').read().strip() == '1'
    pause = int(open('/proc/sys/kernel/printk_ratelimit').read())
except OSError:
    logged = False
# The kernel logs at most ten such deaths in five seconds, over all processes.
for tries_left in (3, 2, 1, 0):
    exited, pid = death({'FAKE_MODE': 'fault'})
    check(exited['words'].startswith('killed by signal 11 (SIGSEGV, Segmentation fault)'), f'{exited}')
    if not logged or exited['kernel_lines'] or tries_left == 0:
        break
    time.sleep(pause + 1)
if logged:
    check(any(f'[{pid}]' in line and 'segfault' in line for line in exited['kernel_lines']),
          f'the kernel said nothing: {exited}')
