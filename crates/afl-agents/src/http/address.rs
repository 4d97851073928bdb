//! Which addresses a handler may be called at: those of the public internet, and what the operator allows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use url::{Host, Url};

/// Hosts and networks that are allowed although they are not of the public internet.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AllowedHosts(Vec<AllowedEntry>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum AllowedEntry {
    /// Whatever it resolves to.
    Host(String),
    Network(IpNet),
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{host} is at {address}, which is no public address: allow the host or its network in the agent's configuration"
)]
pub struct PrivateAddress {
    host: String,
    address: IpAddr,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is no host name, address or network such as 10.0.0.0/8")]
pub struct BadAllowedEntry {
    text: String,
}

/// Special-purpose networks of IANA's registries that are not, or not only, the public internet.
const PRIVATE_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// The public internet is `2000::/3`; these parts of it carry other addresses or are for documents.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const PRIVATE_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

impl AllowedHosts {
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, BadAllowedEntry> {
        entries.into_iter().map(AllowedEntry::parse).collect::<Result<_, _>>().map(Self)
    }

    fn admit(&self, host: &str, address: IpAddr) -> Result<(), PrivateAddress> {
        let address = address.to_canonical();
        let is_allowed = |entry: &AllowedEntry| match entry {
            AllowedEntry::Host(name) => name.eq_ignore_ascii_case(host),
            AllowedEntry::Network(network) => network.contains(&address),
        };
        if is_public(address) || self.0.iter().any(is_allowed) {
            return Ok(());
        }
        Err(PrivateAddress { host: host.to_owned(), address })
    }

    /// An address in the URL itself is never resolved, so it is judged here.
    pub(super) fn admit_url(&self, url: &Url) -> Result<(), PrivateAddress> {
        match url.host() {
            Some(Host::Ipv4(address)) => self.admit(&address.to_string(), address.into()),
            Some(Host::Ipv6(address)) => self.admit(&address.to_string(), address.into()),
            Some(Host::Domain(_)) | None => Ok(()),
        }
    }
}

impl AllowedEntry {
    fn parse(text: &str) -> Result<Self, BadAllowedEntry> {
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Self::Network(network));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Network(address.into()));
        }
        match Host::parse(text) {
            Ok(Host::Domain(name)) => Ok(Self::Host(name)),
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) | Err(_) => Err(BadAllowedEntry { text: text.to_owned() }),
        }
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !PRIVATE_V4
            .iter()
            .any(|(network, length)| Ipv4Net::new_assert(*network, *length).contains(&address)),
        IpAddr::V6(address) => {
            let within = |(network, length): &(Ipv6Addr, u8)| {
                Ipv6Net::new_assert(*network, *length).contains(&address)
            };
            within(&PUBLIC_V6) && !PRIVATE_V6.iter().any(within)
        }
    }
}

/// Gives the connection only addresses that are allowed, so that no second look at a name can differ.
#[derive(Clone)]
pub(super) struct Resolver {
    pub(super) allowed: Arc<AllowedHosts>,
    /// Knows the addresses of names.
    pub(super) names: Arc<dyn Resolve>,
}

/// As this machine resolves names.
#[derive(Clone, Copy, Debug)]
pub(super) struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.clone();
        let host = name.as_str().to_owned();
        let looked_up = self.names.resolve(name);
        Box::pin(async move {
            let found: Vec<SocketAddr> = looked_up.await?.collect();
            // One that is private makes the name suspect as a whole.
            for address in &found {
                allowed.admit(&host, address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f19_only_public_addresses_are_admitted() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "ff02::1",
        ];
        for address in private {
            assert!(
                AllowedHosts::default().admit("example.org", address.parse().unwrap()).is_err(),
                "{address}"
            );
        }
        for address in ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "172.32.0.1", "100.128.0.1"] {
            assert!(
                AllowedHosts::default().admit("example.org", address.parse().unwrap()).is_ok(),
                "{address}"
            );
        }
    }

    #[test]
    fn an_address_that_the_operator_allows_is_admitted() {
        let allowed = AllowedHosts::new(["10.0.0.0/8", "127.0.0.1", "db.internal"]).unwrap();
        let admitted = |host: &str, address: &str| allowed.admit(host, address.parse().unwrap()).is_ok();
        assert!(
            admitted("x", "10.9.9.9") && admitted("x", "127.0.0.1") && admitted("DB.internal", "192.168.0.1")
        );
        assert!(admitted("x", "::ffff:10.0.0.1"));
        assert!(!admitted("x", "127.0.0.2") && !admitted("x", "192.168.0.1"));
        assert!(AllowedHosts::new(["10.0.0.0/99"]).is_err());
    }
}
