-- Which boot of the node the attempt's ranks were started under ('': not told), so that a reboot is
-- recognised: nothing of an earlier boot can be left.
ALTER TABLE nodes ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
