"""A rank hangs: what the kernel, the debugger and the rank itself report about it becomes an event."""
import os, shutil, signal, time
from agent_talk import Agent, check


def state(pid):
    with open(f'/proc/{pid}/stat') as file:
        return file.read().split(')')[1].split()[0]


agent = Agent()
agent.connect()
agent.start(2, {'FAKE_MODE': 'hang', 'FAKE_STEP_MS': '5', 'FAKE_STEP': '3', 'FAKE_RANK': '1',
                'FAKE_STEPS': '100000'})
pids = {agent.wait('started', rank=r)['rank']: agent.seen[-1]['pid'] for r in (0, 1)}
agent.wait('log', rank=1, text='step 2')

# rank 1 waits for a collective, and reports it; the event thread of rank 0, which is stopped, does not answer
os.kill(pids[0], signal.SIGSTOP)
while state(pids[0]) != 'T':
    time.sleep(0.01)
agent.send(command='diagnose', rank=-1)
told = {}
while len(told) < 2:
    event = agent.wait('diagnosis', 15)
    told[event['rank']] = event
stopped, hung = told[0], told[1]
check(stopped['state'] == 'T' and stopped['state_words'] == 'stopped by a signal', f'{stopped}')
check('does not run' in stopped['stack_note'], f'{stopped}')
check(stopped['where'] is None and 'does not answer' in stopped['where_note'], f'{stopped}')
check(hung['state'] in 'RS', f'{hung}')  # this rank polls
check(hung['pid'] == pids[1] and hung['thread_count'] == 1, f'{hung}')
check(hung['threads'][0]['name'] == 'fake_engine', f'{hung}')
check(hung['where'] == {'step': 3, 'phase': 'train', 'collective': 'all_reduce comm/ddp #3, 25.0 MB',
                        'seconds': 12.5, 'micro_step': None, 'micro_steps': None, 'progress': 2},
      f'{hung}')
check(hung['cpu_seconds'] >= 0, f'{hung}')

# every `alive` has all that the watchdog needs, except for a rank that a diagnosis may hold
alive = agent.wait('alive')
while len(alive['ranks']) < 2 or not alive['ranks'][1]['waiting']:
    alive = agent.wait('alive')
one, other = alive['ranks']
check((one['rank'], one['state'], one['answered']) == (0, 'T', False), f'{alive}')
check((other['rank'], other['progress'], other['answered']) == (1, 2, True), f'{alive}')
check(alive['next_sequence'] > 0 and alive['clock_ms'] > 0, f'{alive}')
if shutil.which('gdb') or shutil.which('eu-stack'):
    check(any(' hear ' in line for line in hung['stack']) or hung['stack_note'],
          f"neither a stack nor a word about it: {hung['stack']}")
else:
    check('neither eu-stack nor gdb' in hung['stack_note'], f'{hung}')

# the ranks are unchanged: the stopped one is still stopped, the other one ends on request
check(state(pids[0]) == 'T', 'rank 0 continues')
agent.send(command='diagnose', rank=7)
check('no such rank' in agent.wait('error')['message'], 'a rank that is not there is diagnosed')
agent.send(command='diagnose', rank=1)
agent.send(command='stop', grace_seconds=0)
agent.wait('diagnosis', rank=1)
agent.wait('exited', rank=1, reason='stopped')
agent.wait('released', left=[])
agent.send(command='bye')
