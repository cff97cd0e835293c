"""A training with DDP, or with transformers' Trainer (--trainer), in which one rank fails at a step in the given
way."""
import argparse, datetime, json, os, sys, threading, time

parser = argparse.ArgumentParser()
parser.add_argument('--fault', default='none')
parser.add_argument('--rank', type=int, default=0)
parser.add_argument('--step', type=int, default=6)
parser.add_argument('--steps', type=int, default=16)
parser.add_argument('--timeout', type=float, default=1800)
parser.add_argument('--out')
parser.add_argument('--resume')
parser.add_argument('--trainer', action='store_true')
args = parser.parse_args()

import torch
import torch.distributed as dist

torch.set_num_threads(1)
torch.manual_seed(0)
rank = int(os.environ['RANK'])
first_try = os.environ.get('DTRUN_ATTEMPT', '1') == '1'


def fail():
    """Does what --fault says; some faults return."""
    fault = args.fault
    if fault == 'exception':
        raise ValueError(f'bad sample 4711 on rank {rank}')
    if fault == 'exit0':
        sys.exit(0)
    if fault == 'os._exit':
        os._exit(7)
    if fault == 'segv':
        import ctypes
        ctypes.string_at(0)
    if fault == 'abort':
        os.abort()
    if fault in ('sigkill', 'resume'):
        os.kill(os.getpid(), 9)
    if fault == 'hang':
        time.sleep(3600)
    if fault == 'oom':
        import resource
        used = int(open('/proc/self/statm').read().split()[0]) * os.sysconf('SC_PAGE_SIZE')
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), resource.RLIM_INFINITY))
        kept = []
        while True:
            kept.append(bytearray(10_000_000))
    if fault == 'thread':
        def raises():
            raise KeyError('in a thread')
        threading.Thread(target=raises).start()
    if fault == 'message':
        sys.exit('cannot open the data set /data/x')


def train_ddp():
    dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=args.timeout))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=.05)
    step = 0
    if args.resume:
        saved = torch.load(args.resume)
        model.load_state_dict(saved['model'])
        step = saved['step']
        print(f'rank {rank} continues at step {step}', flush=True)
    while step < args.steps:
        step += 1
        if rank == args.rank and step == args.step and first_try:
            fail()
        x = torch.randn(8, 16)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(json.dumps({'step': step, 'loss': loss.item()}), flush=True)
        if rank == 0 and args.out and step % 2 == 0:
            os.makedirs(args.out, exist_ok=True)
            path = os.path.join(args.out, f'step-{step}.pt')
            torch.save({'model': model.state_dict(), 'step': step}, path + '.tmp')
            os.rename(path + '.tmp', path)
        time.sleep(0.1)
    dist.destroy_process_group()


def train_trainer():
    from transformers import (GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments)

    class Fails(TrainerCallback):
        def on_step_end(self, arguments, state, control, **unused):
            if rank == args.rank and state.global_step == args.step and first_try:
                fail()

    rows = [{'input_ids': torch.arange(i, i + 8), 'labels': torch.arange(i, i + 8)} for i in range(64)]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_layer=1, n_head=1, n_embd=16, n_positions=8,
                                       bos_token_id=None, eos_token_id=None))
    arguments = TrainingArguments(output_dir='trainer-out', max_steps=args.steps, per_device_train_batch_size=2,
                                  logging_steps=2, save_strategy='no', use_cpu=True, report_to=[])
    Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Fails()]).train()


train_trainer() if args.trainer else train_ddp()
