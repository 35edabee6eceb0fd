/* address: who a client is: the other end of its connection, or, if that is one of our proxies, who the proxy says.
 *
 * A proxy appends the address it was asked from to a header, behind whatever the client wrote there itself; so the list
 * is read from its end, and only as long as the hop that wrote an entry is trusted.  What one client can have many of,
 * the addresses within an IPv6 network of 64 bits, counts as one.
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

/* "192.0.2.1", "2001:db8::1", both also with a port: "192.0.2.1:80", "[2001:db8::1]:80".  False if it is none. */
bool address_parse(const char *text, size_t len, struct address *out);
/* "10.0.0.0/8, ::1": networks or single addresses.  ST_INPUT says which is none. */
MUST_USE enum status address_nets_parse(const char *text, struct address_nets *out, struct error *err);
bool address_is_in(const struct address *a, const struct address_nets *nets);
bool address_is_loopback(const struct address *a);

void address_of_socket(const struct sockaddr *s, struct address *out); /* s may be NULL */
/* The client behind `peer`.  list: the header's value, those of several headers joined by commas, or NULL. */
void address_of_client(const struct address *peer, const struct address_nets *trusted, enum address_header form,
                       const char *list, struct address *out);
/* As text; IPv6 cut to its network of 64 bits. */
void address_put(const struct address *a, char out[ADDRESS_TEXT_SIZE]);

#endif
