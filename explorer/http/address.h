/* address: the address of a client: the other end of its connection or, if that is a trusted proxy, the client that the
 * proxy names.
 *
 * A proxy appends the address of its own client to a header, after whatever that client wrote there.  So the list is
 * read from its end, and only as long as the hop that wrote an entry is trusted.  All addresses of one IPv6 network of
 * 64 bits count as one client, because one client can have all of them.
 */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/error.h"

enum { ADDRESS_TEXT_SIZE = 48, ADDRESS_NETS_MAX = 32 };

/* IPv6; an IPv4 address as ::ffff:a.b.c.d.  All zero: unknown. */
struct address {
  unsigned char bytes[16];
};

struct address_net {
  struct address base;
  int bits; /* of the 128 */
};

struct address_nets {
  int n;
  struct address_net nets[ADDRESS_NETS_MAX];
};

/* The form in which a proxy lists addresses. */
enum address_header {
  ADDRESS_X_FORWARDED_FOR, /* client, proxy, proxy */
  ADDRESS_FORWARDED,       /* RFC 7239: for=client;proto=https, for="[2001:db8::1]:4711" */
};

/* "192.0.2.1" or "2001:db8::1", or either with a port: "192.0.2.1:80", "[2001:db8::1]:80".  False for anything else. */
bool address_parse(const char *text, size_t len, struct address *out);
/* A list of networks or single addresses: "10.0.0.0/8, ::1".  ST_INPUT names the entry that is neither. */
MUST_USE enum status address_nets_parse(const char *text, struct address_nets *out, struct error *err);
bool address_is_in(const struct address *a, const struct address_nets *nets);
bool address_is_loopback(const struct address *a);

void address_of_socket(const struct sockaddr *s, struct address *out); /* s may be NULL */
/* The client of the connection from `peer`.  list: the header's value, with several headers joined by commas, or
 * NULL. */
void address_of_client(const struct address *peer, const struct address_nets *trusted, enum address_header form,
                       const char *list, struct address *out);
/* As text; IPv6 is cut to its network of 64 bits. */
void address_put(const struct address *a, char out[ADDRESS_TEXT_SIZE]);

#endif
