//! DPDK's rte_acl over five fields of IPv4, by every way to classify that the machine has.

#include <stdint.h>

typedef uint32_t found;

#include "lookup.h"

#include <rte_acl.h>

// A rule as it is read from a file; earlier ones come first.
struct rule {
	uint32_t source, source_length, destination, destination_length;
	uint32_t source_port_low, source_port_high, destination_port_low, destination_port_high;
	uint32_t protocol, protocol_mask;
};

// A query: what rte_acl looks at, in the byte order of the wire.
struct key {
	uint8_t protocol, padding[3];
	uint32_t source, destination;
	uint16_t source_port, destination_port;
};

enum { PROTOCOL, SOURCE, DESTINATION, SOURCE_PORT, DESTINATION_PORT, FIELDS };

RTE_ACL_RULE_DEF(acl_rule, FIELDS);

static const struct rte_acl_field_def definitions[FIELDS] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTOCOL, 0, offsetof(struct key, protocol)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, SOURCE, 1, offsetof(struct key, source)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, DESTINATION, 2, offsetof(struct key, destination)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, SOURCE_PORT, 3, offsetof(struct key, source_port)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, DESTINATION_PORT, 3, offsetof(struct key, destination_port)}};

static struct rte_acl_ctx *acl;
static enum rte_acl_classify_alg algorithm;
static unsigned singly;

static const char *const names[] = {
	"rte_acl scalar", "rte_acl sse", "rte_acl avx2", "rte_acl avx512x16", "rte_acl avx512x32", "rte_acl single", NULL};

static const char *take_method(unsigned method)
{
	static const enum rte_acl_classify_alg algorithms[] = {
		RTE_ACL_CLASSIFY_SCALAR, RTE_ACL_CLASSIFY_SSE, RTE_ACL_CLASSIFY_AVX2,
		RTE_ACL_CLASSIFY_AVX512X16, RTE_ACL_CLASSIFY_AVX512X32, RTE_ACL_CLASSIFY_SCALAR};
	singly = method == 5;
	algorithm = algorithms[method];
	return rte_acl_set_ctx_classify(acl, algorithm) ? "this machine or build lacks it" : NULL;
}

static inline void look(const unsigned char *from, uint32_t *results, unsigned count)
{
	const uint8_t *data[BATCH_MAX];
	for (unsigned i = 0; i < count; i++)
		data[i] = from + i * sizeof(struct key);
	if (singly)
		for (unsigned i = 0; i < count; i++)
			rte_acl_classify_alg(acl, data + i, results + i, 1, 1, algorithm);
	else
		rte_acl_classify_alg(acl, data, results, count, 1, algorithm);
}

// A rule's number plus one, so that nothing found becomes all ones.
static inline uint32_t answer(uint32_t result)
{
	return result - 1;
}

static void build(struct bytes data)
{
	const struct rule *rules = (const struct rule *)data.data;
	size_t rule_count = data.length / sizeof(*rules);
	struct rte_acl_param parameters = {
		.name = "acl", .socket_id = (int)rte_socket_id(), .rule_size = RTE_ACL_RULE_SZ(FIELDS),
		.max_rule_num = (uint32_t)rule_count + 1};
	acl = rte_acl_create(&parameters);
	if (!acl)
		fail("rte_acl_create", rte_strerror(rte_errno));
	for (size_t i = 0; i < rule_count; i++) {
		const struct rule *from = &rules[i];
		struct acl_rule rule = {
			.data = {.category_mask = 1, .priority = (int32_t)(RTE_ACL_MAX_PRIORITY - i), .userdata = (uint32_t)i + 1}};
		rule.field[PROTOCOL].value.u8 = (uint8_t)from->protocol;
		rule.field[PROTOCOL].mask_range.u8 = (uint8_t)from->protocol_mask;
		rule.field[SOURCE].value.u32 = from->source;
		rule.field[SOURCE].mask_range.u32 = from->source_length;
		rule.field[DESTINATION].value.u32 = from->destination;
		rule.field[DESTINATION].mask_range.u32 = from->destination_length;
		rule.field[SOURCE_PORT].value.u16 = (uint16_t)from->source_port_low;
		rule.field[SOURCE_PORT].mask_range.u16 = (uint16_t)from->source_port_high;
		rule.field[DESTINATION_PORT].value.u16 = (uint16_t)from->destination_port_low;
		rule.field[DESTINATION_PORT].mask_range.u16 = (uint16_t)from->destination_port_high;
		int code = rte_acl_add_rules(acl, (const struct rte_acl_rule *)&rule, 1);
		if (code)
			fail("rte_acl_add_rules", strerror(-code));
	}
	struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
	memcpy(config.defs, definitions, sizeof(definitions));
	int code = rte_acl_build(acl, &config);
	if (code)
		fail("rte_acl_build", strerror(-code));
}

int main(int count, char **arguments)
{
	struct bytes rules = dpdk_start(count, arguments, 3, "acl PAGES RULES");
	width = sizeof(struct key);
	struct peer peer = built(rules, build, names, take_method, NULL);
	return peer_serve(&peer);
}
