"""The memory of GPUs is free again before a run is released, or `released` reports what is held and where. The devices
are a program called nvidia-smi, which prints what a file says."""
import os, threading, time
os.environ['DTRUN_TEST_TIMES'] = '0.2'  # the check for released memory ends after 4 s
from agent_talk import Agent, check, figure

SMI = '''#!/bin/sh
[ "$1" = --query-gpu=index,uuid,memory.used ] || exit 2
cat "$(dirname "$0")/answer"
'''
MIB = 1 << 20
endless = {'FAKE_STEPS': '1000000'}


def gpu_agent(answer, name='nvidia-smi'):
    agent = Agent()
    programs = agent.top + '/programs'
    os.mkdir(programs)
    agent.answer = programs + '/answer'
    say(agent, answer)
    with open(f'{programs}/{name}', 'w') as file:
        file.write(SMI)
    os.chmod(f'{programs}/{name}', 0o755)
    agent.environment['PATH'] = programs + ':/usr/bin:/bin'
    agent.environment['CUDA_VISIBLE_DEVICES'] = '0,GPU-c'
    agent.connect()
    return agent


def say(agent, text):
    with open(agent.answer + '.new', 'w') as file:
        file.write(text)
    os.rename(agent.answer + '.new', agent.answer)


def answer(*used):
    return ''.join(f'{i}, GPU-{"abc"[i]}000, {u}\n' for i, u in enumerate(used))


# memory that is held for a while after the ranks are gone is waited for
agent = gpu_agent(answer(100, 7, 3))
agent.start(2, endless, device='cuda')
agent.wait('metrics', step=1)
say(agent, answer(9000, 90000, 3))
agent.send(command='stop', grace_seconds=30)
agent.wait('exited')
agent.wait('exited')
begun = time.monotonic()
threading.Timer(1.2, say, (agent, answer(600, 90000, 3))).start()
released = agent.wait('released', left=[])
check(time.monotonic() - begun > 1, 'it was released while a device held 9 GB')
check(released['devices'] == [
    {'index': 0, 'baseline_bytes': 100 * MIB, 'used_bytes': 600 * MIB},
    {'index': 2, 'baseline_bytes': 3 * MIB, 'used_bytes': 3 * MIB}], f'{released}')
check(released['devices_note'] == '', f'{released}')

# unreadable answers, no such program, and a stop before the ranks exist
agent = gpu_agent('No devices were found\n')
agent.start(1, {'FAKE_STEPS': '2'}, device='cuda')
check("unexpected output of nvidia-smi: 'No devices" in agent.wait('released')['devices_note'], 'no word of it')
agent = gpu_agent('', name='another')
if not any(os.path.exists(f'{p}/nvidia-smi') for p in ('/usr/bin', '/bin')):
    agent.start(1, {'FAKE_STEPS': '2'}, device='cuda')
    check('no nvidia-smi' in agent.wait('released')['devices_note'], 'no word of it')
agent = gpu_agent('')
os.unlink(agent.answer)
os.mkfifo(agent.answer)  # nvidia-smi never answers
agent.start(1, {'FAKE_STEPS': '2'}, device='cuda')
agent.send(command='stop', grace_seconds=30)
agent.wait('released', 5, left=[])
check(not any(e['event'] == 'started' for e in agent.seen), 'a rank was started after the stop')

# memory that is never released is reported, within a bounded time
agent = gpu_agent(answer(100, 0, 0))
agent.start(1, endless, device='cuda')
agent.wait('metrics', step=1)
say(agent, answer(5000, 0, 0))
agent.send(command='stop', grace_seconds=30)
released = agent.wait('released', 40)
used = released['devices'][0]['used_bytes']
check(used == 5000 * MIB, f'{released}')
figure(6, 'GPU memory that does not come back (a program in nvidia-smi\'s place): told of as left', '-',
       f'{used // MIB} MiB')

agent = Agent()
agent.connect()
agent.start(1, {'FAKE_STEPS': '2'})
released = agent.wait('released')
check(released['devices'] == [] and 'no rank' in released['devices_note'], f'{released}')
