// SPDX-License-Identifier: GPL-2.0
/* Counters to read, faults to cause: uapi.h describes the files. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "amdgpu_reset.h"
#include "softgpu.h"

static struct dentry *sg_root;

static u32 sg_mapped(const struct softgpu *sg)
{
	u32 i, n = 0;

	for (i = 0; i < SG_SLOTS; i++)
		n += sg->slots[i].entry != NULL;
	for (i = 0; i < SG_SDMA_SLOTS; i++)
		n += sg->sdma[i].entry != NULL;
	return n;
}

static int sg_stats_show(struct seq_file *m, void *unused)
{
	struct softgpu *sg = m->private;

	mutex_lock(&sg->lock);
#define SG_SHOW(name) seq_printf(m, #name " %llu\n", sg->stats.name);
	SG_STATS(SG_SHOW)
#undef SG_SHOW
	seq_printf(m, "mapped %u\nactive %u\nunread %llu\nclock_ns %llu\n", sg_mapped(sg), sg->nentries,
		   sg_hiq_unread(sg), sg_now(sg));
	mutex_unlock(&sg->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sg_stats);

/* Wave-ns each process has had, by PASID; what is mapped now included. */
static int sg_processes_show(struct seq_file *m, void *unused)
{
	struct softgpu *sg = m->private;
	unsigned long pasid;
	void *value;
	u32 i;

	mutex_lock(&sg->lock);
	for (i = 0; i < SG_SLOTS; i++)
		if (sg->slots[i].entry)
			sg_charge(&sg->slots[i], sg_now(sg));
	xa_for_each(&sg->wave_ns, pasid, value) seq_printf(m, "%lu %lu\n", pasid, xa_to_value(value));
	mutex_unlock(&sg->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sg_processes);

static bool sg_is_evicted(const struct kfd_process *p)
{
	u32 i;

	for (i = 0; i < p->n_pdds; i++)
		if (!p->pdds[i]->qpd.evicted)
			return false;
	return true;
}

/*
 * The memory manager needs a process's memory, or has it again: its queues go and come.  One restore too many
 * is refused here: it would be our mistake, and amdkfd warns of it.
 */
static int sg_evict(u32 pasid, bool evict)
{
	struct kfd_process *p = kfd_lookup_process_by_pasid(pasid);
	int r;

	if (!p)
		return -ESRCH;
	if (evict)
		r = kfd_process_evict_queues(p, KFD_QUEUE_EVICTION_TRIGGER_TTM);
	else
		r = sg_is_evicted(p) ? kfd_process_restore_queues(p) : -EINVAL;
	kfd_unref_process(p);
	return r;
}

/* A page fault of a process that is mapped. */
static int sg_vm_fault(struct softgpu *sg, u32 pasid, u64 addr)
{
	u32 i;

	for (i = 0; i < SG_SLOTS; i++) {
		if (!sg->slots[i].entry || sg->slots[i].entry->pasid != pasid)
			continue;
		sg_page_fault(&sg->slots[i], addr);
		return 0;
	}
	return -ESRCH;
}

/* A CPU that is stuck, for the bed's own test. */
static void sg_spin(u64 seconds)
{
	preempt_disable();
	for (; seconds; seconds--)
		mdelay(1000);
	preempt_enable();
}

/* As while the GPU resets: amdkfd sends it nothing. It goes on afterwards. */
static noinline void sg_hold_reset(struct amdgpu_device *adev, unsigned int ms)
{
	down_write(&adev->reset_domain->sem);
	msleep(ms);
	up_write(&adev->reset_domain->sem);
}

static int sg_cause(struct softgpu *sg, const char *word, u64 number, u64 addr)
{
	if (!strcmp(word, "none"))
		sg->faults = (struct sg_faults){};
	else if (!strcmp(word, "no-preempt"))
		sg->faults.no_preempt = true;
	else if (!strcmp(word, "hung-hiq"))
		sg->faults.hung_hiq = true;
	else if (!strcmp(word, "slow-save"))
		sg->faults.slow_save_ns = number;
	else if (!strcmp(word, "lost-irq"))
		sg->faults.lost_irqs = number;
	else if (!strcmp(word, "early-rptr"))
		sg->faults.early_rptr = true;
	else if (!strcmp(word, "vm-fault"))
		return sg_vm_fault(sg, number, addr);
	else
		return -EINVAL;
	return 0;
}

static ssize_t sg_faults_write(struct file *file, const char __user *user, size_t size, loff_t *offset)
{
	struct softgpu *sg = file_inode(file)->i_private;
	char text[64] = "", word[32] = "";
	u64 number = 0, addr = 0;
	int r;

	if (size >= sizeof(text) || copy_from_user(text, user, size))
		return -EINVAL;
	if (sscanf(text, "%31s %llu %llx", word, &number, &addr) < 1)
		return -EINVAL;
	if (!strcmp(word, "reset")) {
		amdgpu_amdkfd_gpu_reset(&sg->adev);
		return size;
	}
	if (!strcmp(word, "hold-reset")) {
		sg_hold_reset(&sg->adev, number);
		return size;
	}
	if (!strcmp(word, "spin")) {
		sg_spin(number);
		return size;
	}
	if (!strcmp(word, "evict") || !strcmp(word, "restore")) {
		r = sg_evict(number, word[0] == 'e');
		return r ? r : size;
	}
	mutex_lock(&sg->lock);
	r = sg_cause(sg, word, number, addr);
	mutex_unlock(&sg->lock);
	return r ? r : size;
}

static const struct file_operations sg_faults_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = sg_faults_write,
};

void sg_debugfs_add(struct softgpu *sg)
{
	char name[16];

	if (!sg_root)
		sg_root = debugfs_create_dir("softgpu", NULL);
	snprintf(name, sizeof(name), "%d", sg->index);
	sg->debugfs = debugfs_create_dir(name, sg_root);
	debugfs_create_file("stats", 0444, sg->debugfs, sg, &sg_stats_fops);
	debugfs_create_file("processes", 0444, sg->debugfs, sg, &sg_processes_fops);
	debugfs_create_file("faults", 0200, sg->debugfs, sg, &sg_faults_fops);
}

void sg_debugfs_remove(struct softgpu *sg)
{
	debugfs_remove_recursive(sg->debugfs);
}

void sg_debugfs_exit(void)
{
	debugfs_remove_recursive(sg_root);
}
