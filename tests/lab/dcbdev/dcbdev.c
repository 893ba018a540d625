// SPDX-License-Identifier: GPL-2.0
/*
 * Network interfaces with all of DCB and no hardware, for guests of tests/lab: what a ConnectX-7 and its driver would
 * say to dcbnl, ethtool and debugfs, kept in memory. It takes every PCI function of that kind, under that driver's
 * name, and joins the interfaces of each two of them by a cable. A test must be able to see what was written without
 * asking who wrote it, and to make any write fail:
 *
 *   /sys/kernel/debug/dcbdev/NETDEV/writes/OP   how often OP was called; those that failed count, too
 *   /sys/kernel/debug/dcbdev/NETDEV/fail/OP     errno that OP answers with from now on; 0: none
 *   /sys/kernel/debug/dcbdev/NETDEV/bounce      what a change of PFC does to the link: 0 nothing, 1 down and up as on
 *                                               mlx5, 2 there is no link while PFC is on, 3 down and up, and as on
 *                                               mlx5 a change of the MTU too
 *   /sys/kernel/debug/dcbdev/NETDEV/dcbx        DCB_CAP_DCBX_* as firmware would have them
 *   /sys/kernel/debug/dcbdev/NETDEV/pause       global pause: 1 RX, 2 TX
 *   /sys/kernel/debug/dcbdev/NETDEV/count/NAME  an error counter
 */
#include <linux/dcbnl.h>
#include <linux/debugfs.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <net/dcbnl.h>

enum op { OP_ETS, OP_PFC, OP_APP, OP_DELAPP, OP_BUFFER, OP_MAXRATE, OP_DCBX, OP_WATCHDOG, OP_MTU, OP_CC, OP_PAUSE, OPS };
static const char *const op_names[OPS] = { "ets",  "pfc",      "app", "delapp", "buffer", "maxrate",
					   "dcbx", "watchdog", "mtu", "cc",     "pause" };

enum count { RX_PACKETS, TX_PACKETS, CRC, SYMBOL, DISCARDS, STORM_WARNINGS, STORMS, LINK_DOWNS, COUNTS };
static const char *const count_names[COUNTS] = {
	"rx_packets_phy",	  "tx_packets_phy",		   "rx_crc_errors_phy",
	"rx_symbol_err_phy",	  "rx_discards_phy",		   "tx_pause_storm_warning_events",
	"tx_pause_storm_error_events", "link_down_events_phy",
};
static const char *const pause_names[] = { "rx_prio%d_pause", "rx_prio%d_pause_duration", "tx_prio%d_pause",
					   "tx_prio%d_pause_duration" };

/* The names and the firmware's values of drivers/infiniband/hw/mlx5/cong.c. */
static const struct {
	const char *name;
	u32 value;
} cc_defaults[] = {
	{ "rp_clamp_tgt_rate", 0 },	{ "rp_clamp_tgt_rate_ati", 1 },	       { "rp_time_reset", 300 },
	{ "rp_byte_reset", 32767 },	{ "rp_threshold", 1 },		       { "rp_ai_rate", 5 },
	{ "rp_max_rate", 0 },		{ "rp_hai_rate", 50 },		       { "rp_min_dec_fac", 50 },
	{ "rp_min_rate", 1 },		{ "rp_rate_to_set_on_first_cnp", 0 },  { "rp_dce_tcp_g", 1019 },
	{ "rp_dce_tcp_rtt", 1 },	{ "rp_rate_reduce_monitor_period", 4 }, { "rp_initial_alpha_value", 1023 },
	{ "rp_gd", 11 },		{ "np_min_time_between_cnps", 4 },     { "np_cnp_dscp", 48 },
	{ "np_cnp_prio_mode", 0 },	{ "np_cnp_prio", 6 },
};
#define CC_PARAMS ARRAY_SIZE(cc_defaults)
#define CC_MODE 18
#define CC_PRIO 19

#define DSCPS 64
#define WATCHDOG_AUTO 0xffff

struct dcbdev;
struct cc_param {
	struct dcbdev *dev;
	u32 value;
};

struct dcbdev {
	struct net_device *netdev;
	struct net_device __rcu *peer;
	struct list_head list;
	struct ieee_ets ets;
	struct ieee_pfc pfc;
	struct ieee_maxrate maxrate;
	struct dcbnl_buffer buffer;
	s8 dscp_prio[DSCPS]; /* -1: no APP entry */
	u8 dcbx;
	u16 watchdog;
	u32 bounce;
	u32 pause;
	u32 writes[OPS];
	u32 fail[OPS];
	u64 counts[COUNTS];
	struct cc_param cc[CC_PARAMS];
	struct dentry *dir, *cc_dir;
};

static LIST_HEAD(devices); /* under rtnl */
static struct dentry *dcbdev_root, *mlx5_root;

/* Counts a write, and says with which errno it must fail. */
static int begin(struct dcbdev *dev, enum op op)
{
	dev->writes[op]++;
	return -(int)dev->fail[op];
}

static int dcbdev_getets(struct net_device *netdev, struct ieee_ets *ets)
{
	*ets = ((struct dcbdev *)netdev_priv(netdev))->ets;
	return 0;
}

static int dcbdev_setets(struct net_device *netdev, struct ieee_ets *ets)
{
	struct dcbdev *dev = netdev_priv(netdev);
	int i, sum = 0, shares = 0, err = begin(dev, OP_ETS);

	if (err)
		return err;
	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++) {
		if (ets->prio_tc[i] >= IEEE_8021QAZ_MAX_TCS)
			return -EINVAL;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_CB_SHAPER)
			return -EOPNOTSUPP;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS) {
			shares++;
			sum += ets->tc_tx_bw[i];
		}
	}
	if (shares && sum != 100)
		return -EINVAL;
	dev->ets = *ets;
	dev->ets.ets_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

static int dcbdev_getpfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	*pfc = ((struct dcbdev *)netdev_priv(netdev))->pfc;
	return 0;
}

static int dcbdev_setpfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	struct dcbdev *dev = netdev_priv(netdev);
	int err = begin(dev, OP_PFC);
	bool changed = pfc->pfc_en != dev->pfc.pfc_en;

	if (err)
		return err;
	dev->pfc.pfc_en = pfc->pfc_en;
	if (pfc->delay && pfc->delay < 1000)
		dev->pfc.delay = pfc->delay;
	if (!changed || !dev->bounce)
		return 0;
	dev->counts[LINK_DOWNS]++;
	netif_carrier_off(netdev);
	if (dev->bounce != 2 || !dev->pfc.pfc_en)
		netif_carrier_on(netdev);
	return 0;
}

/* As on mlx5 a DSCP has one entry, and a new one takes the place of the old. */
static int dcbdev_setapp(struct net_device *netdev, struct dcb_app *app)
{
	struct dcbdev *dev = netdev_priv(netdev);
	struct dcb_app old = *app;
	int err = begin(dev, OP_APP);

	if (err)
		return err;
	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= DSCPS)
		return -EINVAL;
	if (dev->dscp_prio[app->protocol] >= 0) {
		old.priority = dev->dscp_prio[app->protocol];
		dcb_ieee_delapp(netdev, &old);
	}
	err = dcb_ieee_setapp(netdev, app);
	dev->dscp_prio[app->protocol] = err ? -1 : app->priority;
	return err;
}

static int dcbdev_delapp(struct net_device *netdev, struct dcb_app *app)
{
	struct dcbdev *dev = netdev_priv(netdev);
	int err = begin(dev, OP_DELAPP);

	if (err)
		return err;
	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= DSCPS)
		return -EINVAL;
	if (dev->dscp_prio[app->protocol] != app->priority)
		return -ENOENT;
	dev->dscp_prio[app->protocol] = -1;
	return dcb_ieee_delapp(netdev, app);
}

static int dcbdev_getmaxrate(struct net_device *netdev, struct ieee_maxrate *maxrate)
{
	*maxrate = ((struct dcbdev *)netdev_priv(netdev))->maxrate;
	return 0;
}

static int dcbdev_setmaxrate(struct net_device *netdev, struct ieee_maxrate *maxrate)
{
	struct dcbdev *dev = netdev_priv(netdev);
	int err = begin(dev, OP_MAXRATE);

	if (!err)
		dev->maxrate = *maxrate;
	return err;
}

static int dcbdev_getbuffer(struct net_device *netdev, struct dcbnl_buffer *buffer)
{
	*buffer = ((struct dcbdev *)netdev_priv(netdev))->buffer;
	return 0;
}

static int dcbdev_setbuffer(struct net_device *netdev, struct dcbnl_buffer *buffer)
{
	struct dcbdev *dev = netdev_priv(netdev);
	u32 total = dev->buffer.total_size, sum = 0;
	int i, err = begin(dev, OP_BUFFER);

	if (err)
		return err;
	for (i = 0; i < DCBX_MAX_BUFFERS; i++)
		sum += buffer->buffer_size[i];
	if (sum > total)
		return -EINVAL;
	dev->buffer = *buffer;
	dev->buffer.total_size = total;
	return 0;
}

static u8 dcbdev_getdcbx(struct net_device *netdev)
{
	return ((struct dcbdev *)netdev_priv(netdev))->dcbx;
}

/* Answers 1 where it refuses, as drivers do. */
static u8 dcbdev_setdcbx(struct net_device *netdev, u8 mode)
{
	struct dcbdev *dev = netdev_priv(netdev);

	if (begin(dev, OP_DCBX) || (mode & DCB_CAP_DCBX_LLD_MANAGED) || !(mode & DCB_CAP_DCBX_HOST))
		return 1;
	dev->dcbx = mode;
	return 0;
}

static const struct dcbnl_rtnl_ops dcbdev_dcbnl_ops = {
	.ieee_getets = dcbdev_getets,
	.ieee_setets = dcbdev_setets,
	.ieee_getpfc = dcbdev_getpfc,
	.ieee_setpfc = dcbdev_setpfc,
	.ieee_setapp = dcbdev_setapp,
	.ieee_delapp = dcbdev_delapp,
	.ieee_getmaxrate = dcbdev_getmaxrate,
	.ieee_setmaxrate = dcbdev_setmaxrate,
	.dcbnl_getbuffer = dcbdev_getbuffer,
	.dcbnl_setbuffer = dcbdev_setbuffer,
	.getdcbx = dcbdev_getdcbx,
	.setdcbx = dcbdev_setdcbx,
};

/* A priority without PFC has no rows, as on mlx5. */
static int dcbdev_sset_count(struct net_device *netdev, int sset)
{
	struct dcbdev *dev = netdev_priv(netdev);

	return sset == ETH_SS_STATS ? COUNTS + hweight8(dev->pfc.pfc_en) * ARRAY_SIZE(pause_names) : -EOPNOTSUPP;
}

static void dcbdev_strings(struct net_device *netdev, u32 sset, u8 *data)
{
	struct dcbdev *dev = netdev_priv(netdev);
	int i, prio;

	for (i = 0; i < COUNTS; i++)
		ethtool_sprintf(&data, "%s", count_names[i]);
	for (prio = 0; prio < 8; prio++)
		for (i = 0; (dev->pfc.pfc_en & BIT(prio)) && i < ARRAY_SIZE(pause_names); i++)
			ethtool_sprintf(&data, pause_names[i], prio);
}

static void dcbdev_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *data)
{
	struct dcbdev *dev = netdev_priv(netdev);

	memset(data, 0, dcbdev_sset_count(netdev, ETH_SS_STATS) * sizeof(*data));
	memcpy(data, dev->counts, sizeof(dev->counts));
}

static int dcbdev_get_tunable(struct net_device *netdev, const struct ethtool_tunable *tuna, void *data)
{
	struct dcbdev *dev = netdev_priv(netdev);

	if (tuna->id != ETHTOOL_PFC_PREVENTION_TOUT)
		return -EOPNOTSUPP;
	*(u16 *)data = dev->watchdog;
	return 0;
}

static int dcbdev_set_tunable(struct net_device *netdev, const struct ethtool_tunable *tuna, const void *data)
{
	struct dcbdev *dev = netdev_priv(netdev);
	u16 value = *(const u16 *)data;
	int err = begin(dev, OP_WATCHDOG);

	if (err)
		return err;
	if (tuna->id != ETHTOOL_PFC_PREVENTION_TOUT)
		return -EOPNOTSUPP;
	if (value && value != WATCHDOG_AUTO && (value < 80 || value > 8000))
		return -EINVAL;
	dev->watchdog = value;
	return 0;
}

static void dcbdev_get_pauseparam(struct net_device *netdev, struct ethtool_pauseparam *pause)
{
	struct dcbdev *dev = netdev_priv(netdev);

	pause->autoneg = 0;
	pause->rx_pause = !!(dev->pause & 1);
	pause->tx_pause = !!(dev->pause & 2);
}

/* As mlx5: both ends are told, and do not agree by themselves. */
static int dcbdev_set_pauseparam(struct net_device *netdev, struct ethtool_pauseparam *pause)
{
	struct dcbdev *dev = netdev_priv(netdev);
	int err = begin(dev, OP_PAUSE);

	if (err)
		return err;
	if (pause->autoneg)
		return -EINVAL;
	dev->pause = (pause->rx_pause ? 1 : 0) | (pause->tx_pause ? 2 : 0);
	return 0;
}

static int dcbdev_link_ksettings(struct net_device *netdev, struct ethtool_link_ksettings *settings)
{
	settings->base.speed = 400000;
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static int dcbdev_get_fecparam(struct net_device *netdev, struct ethtool_fecparam *fec)
{
	fec->fec = ETHTOOL_FEC_AUTO;
	fec->active_fec = ETHTOOL_FEC_RS;
	return 0;
}

static const struct ethtool_ops dcbdev_ethtool_ops = {
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = dcbdev_link_ksettings,
	.get_fecparam = dcbdev_get_fecparam,
	.get_sset_count = dcbdev_sset_count,
	.get_strings = dcbdev_strings,
	.get_ethtool_stats = dcbdev_stats,
	.get_tunable = dcbdev_get_tunable,
	.set_tunable = dcbdev_set_tunable,
	.get_pauseparam = dcbdev_get_pauseparam,
	.set_pauseparam = dcbdev_set_pauseparam,
};

static netdev_tx_t dcbdev_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct dcbdev *dev = netdev_priv(netdev);
	struct net_device *peer;

	rcu_read_lock();
	peer = rcu_dereference(dev->peer);
	dev->counts[TX_PACKETS]++;
	if (peer && netif_carrier_ok(netdev) && netif_running(peer)) {
		((struct dcbdev *)netdev_priv(peer))->counts[RX_PACKETS]++;
		dev_forward_skb(peer, skb);
	} else {
		kfree_skb(skb);
	}
	rcu_read_unlock();
	return NETDEV_TX_OK;
}

static int dcbdev_change_mtu(struct net_device *netdev, int mtu)
{
	struct dcbdev *dev = netdev_priv(netdev);
	int err = begin(dev, OP_MTU);

	if (err)
		return err;
	netdev->mtu = mtu;
	if (dev->bounce == 3 && netif_carrier_ok(netdev)) {
		dev->counts[LINK_DOWNS]++;
		netif_carrier_off(netdev);
		netif_carrier_on(netdev);
	}
	return 0;
}

static const struct net_device_ops dcbdev_netdev_ops = {
	.ndo_start_xmit = dcbdev_xmit,
	.ndo_change_mtu = dcbdev_change_mtu,
	.ndo_set_mac_address = eth_mac_addr,
};

static void dcbdev_setup(struct net_device *netdev)
{
	ether_setup(netdev);
	netdev->netdev_ops = &dcbdev_netdev_ops;
	netdev->ethtool_ops = &dcbdev_ethtool_ops;
	netdev->dcbnl_ops = &dcbdev_dcbnl_ops;
	netdev->max_mtu = 9978;
	eth_hw_addr_random(netdev);
}

static int cc_get(void *data, u64 *value)
{
	*value = ((struct cc_param *)data)->value;
	return 0;
}

static int cc_set(void *data, u64 value)
{
	struct cc_param *param = data;
	int err = begin(param->dev, OP_CC);

	if (err)
		return err;
	param->value = value;
	if (param == &param->dev->cc[CC_PRIO])
		param->dev->cc[CC_MODE].value = 0;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(cc_fops, cc_get, cc_set, "%llu\n");

static void make_files(struct dcbdev *dev, struct pci_dev *pdev)
{
	struct dentry *writes, *fail, *count, *cc;
	int i;

	dev->dir = debugfs_create_dir(dev->netdev->name, dcbdev_root);
	writes = debugfs_create_dir("writes", dev->dir);
	fail = debugfs_create_dir("fail", dev->dir);
	count = debugfs_create_dir("count", dev->dir);
	for (i = 0; i < OPS; i++) {
		debugfs_create_u32(op_names[i], 0600, writes, &dev->writes[i]);
		debugfs_create_u32(op_names[i], 0600, fail, &dev->fail[i]);
	}
	for (i = 0; i < COUNTS; i++)
		debugfs_create_u64(count_names[i], 0600, count, &dev->counts[i]);
	debugfs_create_u32("bounce", 0600, dev->dir, &dev->bounce);
	debugfs_create_u32("pause", 0600, dev->dir, &dev->pause);
	debugfs_create_u8("dcbx", 0600, dev->dir, &dev->dcbx);
	dev->cc_dir = debugfs_create_dir(pci_name(pdev), mlx5_root);
	cc = debugfs_create_dir("cc_params", dev->cc_dir);
	for (i = 0; i < CC_PARAMS; i++)
		debugfs_create_file(cc_defaults[i].name, 0600, cc, &dev->cc[i], &cc_fops);
}

/* What a ConnectX-7 has that nobody has set: one class a priority, strict; all of the buffer in the first. */
static void set_defaults(struct dcbdev *dev)
{
	int i;

	dev->ets.ets_cap = IEEE_8021QAZ_MAX_TCS;
	dev->pfc.pfc_cap = 8;
	dev->pfc.delay = 7;
	dev->dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_CEE | DCB_CAP_DCBX_VER_IEEE;
	dev->watchdog = 0;
	dev->buffer.total_size = 1048512;
	dev->buffer.buffer_size[0] = 262016;
	memset(dev->dscp_prio, -1, sizeof(dev->dscp_prio));
	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++) {
		dev->ets.prio_tc[i] = i;
		dev->ets.tc_tsa[i] = IEEE_8021QAZ_TSA_VENDOR;
	}
	for (i = 0; i < CC_PARAMS; i++) {
		dev->cc[i].dev = dev;
		dev->cc[i].value = cc_defaults[i].value;
	}
}

static void join(struct dcbdev *dev)
{
	struct dcbdev *other;

	rtnl_lock();
	list_for_each_entry(other, &devices, list) {
		if (rtnl_dereference(other->peer))
			continue;
		rcu_assign_pointer(other->peer, dev->netdev);
		rcu_assign_pointer(dev->peer, other->netdev);
		break;
	}
	list_add_tail(&dev->list, &devices);
	rtnl_unlock();
}

static int dcbdev_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct net_device *netdev = alloc_netdev(sizeof(struct dcbdev), "dcb%d", NET_NAME_ENUM, dcbdev_setup);
	struct dcbdev *dev;
	int err;

	if (!netdev)
		return -ENOMEM;
	dev = netdev_priv(netdev);
	dev->netdev = netdev;
	set_defaults(dev);
	SET_NETDEV_DEV(netdev, &pdev->dev);
	err = register_netdev(netdev);
	if (err) {
		free_netdev(netdev);
		return err;
	}
	pci_set_drvdata(pdev, dev);
	make_files(dev, pdev);
	join(dev);
	return 0;
}

static void dcbdev_remove(struct pci_dev *pdev)
{
	struct dcbdev *dev = pci_get_drvdata(pdev);
	struct net_device *peer;

	debugfs_remove_recursive(dev->dir);
	debugfs_remove_recursive(dev->cc_dir);
	rtnl_lock();
	list_del(&dev->list);
	peer = rtnl_dereference(dev->peer);
	if (peer)
		RCU_INIT_POINTER(((struct dcbdev *)netdev_priv(peer))->peer, NULL);
	rtnl_unlock();
	unregister_netdev(dev->netdev);
	free_netdev(dev->netdev);
}

static const struct pci_device_id dcbdev_ids[] = { { PCI_DEVICE(0x15b3, 0x1021) }, {} };

static struct pci_driver dcbdev_driver = {
	.name = "mlx5_core",
	.id_table = dcbdev_ids,
	.probe = dcbdev_probe,
	.remove = dcbdev_remove,
};

static int __init dcbdev_init(void)
{
	int err;

	dcbdev_root = debugfs_create_dir("dcbdev", NULL);
	mlx5_root = debugfs_create_dir("mlx5", NULL);
	err = pci_register_driver(&dcbdev_driver);
	if (err) {
		debugfs_remove_recursive(mlx5_root);
		debugfs_remove_recursive(dcbdev_root);
	}
	return err;
}

static void __exit dcbdev_exit(void)
{
	pci_unregister_driver(&dcbdev_driver);
	debugfs_remove_recursive(mlx5_root);
	debugfs_remove_recursive(dcbdev_root);
}

module_init(dcbdev_init);
module_exit(dcbdev_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Interfaces with DCB for tests");
