# import: -- --device=cpu --compile=False --eval_iters=20 --block_size=64 --n_layer=4 --learning_rate=1e-3
"""a small model of characters"""
import time

out_dir = 'out-shakespeare-char'
eval_interval = 250
always_save_checkpoint = False
wandb_run_name = 'mini-' + str(time.time())
dataset = 'shakespeare_char'
gradient_accumulation_steps = 1
batch_size = 64
block_size = 256; n_layer = n_head = 6
n_embd = 64 * (2 + 4)
n_head = 6
dropout = 0.2
max_iters = 5_000
lr_decay_iters = max_iters * 2
min_lr = 1e-3 / 10
beta2 = 0.99
warmup_iters = 100
if True:
    batch_size = 12
flash = True
