//! Encrypted connections: `sslmode` and `sslrootcert` of an address, with the meaning that they have for `psql`.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use percent_encoding::percent_decode_str;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Makes encrypted connections; the `SslMode` of the address says whether it is used.
#[derive(Clone)]
pub(super) struct Tls(pub(super) MakeRustlsConnect);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// How a connection is protected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Protection {
    /// None where the address does not say it in a way that is ours to read.
    pub(super) mode: Option<SslMode>,
    trust: Trust,
}

/// Which certificates of a server are accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Trust {
    /// All: this keeps out eavesdroppers, but not an attacker between client and server.
    Any,
    /// Those that a root in this file has signed, for any host name.
    Certified(PathBuf),
    /// Those that one of these roots has signed for the host of the address.
    Named(TrustedRoots),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum TrustedRoots {
    System,
    File(PathBuf),
}

/// Takes the settings of TLS out of an address; the driver reads the rest.
pub(super) fn split(url: &str) -> Result<(String, Protection), String> {
    // A password may have a question mark.
    let login = url.find('@').map_or(0, |at| at + 1);
    let Some(query) = url[login..].find('?').map(|at| login + at) else {
        return Ok((url.to_owned(), Protection { mode: None, trust: Trust::Any }));
    };
    let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
    for pair in url[query + 1..].split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
        match name {
            "sslmode" => mode = Some(value()),
            "sslrootcert" => roots = Some(value()),
            _ => rest.push(pair),
        }
    }
    let address = [&url[..query], &rest.join("&")].join(if rest.is_empty() { "" } else { "?" });
    Ok((address, protection(mode.as_deref(), roots.as_deref())?))
}

fn protection(mode: Option<&str>, roots: Option<&str>) -> Result<Protection, String> {
    let named = roots.map(|roots| match roots {
        "system" => TrustedRoots::System,
        file => TrustedRoots::File(file.into()),
    });
    // An address that names roots wants them used.
    let mode = mode.unwrap_or(if named.is_some() { "verify-full" } else { "prefer" });
    let (mode, trust) = match (mode, named) {
        ("disable", _) => (SslMode::Disable, Trust::Any),
        ("prefer" | "allow", None) => (SslMode::Prefer, Trust::Any),
        ("prefer" | "allow", Some(_)) => {
            return Err(format!("sslmode={mode} uses no sslrootcert: write verify-full, or leave one out"));
        }
        ("require", None) => (SslMode::Require, Trust::Any),
        ("require" | "verify-ca", Some(TrustedRoots::File(file))) => {
            (SslMode::Require, Trust::Certified(file))
        }
        ("require" | "verify-ca", Some(TrustedRoots::System) | None) => {
            return Err(format!(
                "sslmode={mode} with the roots of this machine accepts a certificate of any name: write \
                 sslmode=verify-full, or name the file of your own root with sslrootcert"
            ));
        }
        ("verify-full", named) => (SslMode::Require, Trust::Named(named.unwrap_or(TrustedRoots::System))),
        (other, _) => {
            return Err(format!(
                "sslmode={other} is not known: write disable, prefer, require, verify-ca or verify-full"
            ));
        }
    };
    Ok(Protection { mode: Some(mode), trust })
}

impl Protection {
    /// Reads the trusted roots.
    pub(super) fn connector(&self) -> Result<Tls, String> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let algorithms = provider.signature_verification_algorithms;
        let lenient = |chain| Arc::new(Lenient { algorithms, chain });
        let config = match &self.trust {
            Trust::Named(roots) => config.with_root_certificates(roots.read()?),
            Trust::Certified(file) => {
                let roots = TrustedRoots::File(file.clone()).read()?.into();
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider);
                let chain = verifier.build().map_err(|error| error.to_string())?;
                config.dangerous().with_custom_certificate_verifier(lenient(Some(chain)))
            }
            Trust::Any => config.dangerous().with_custom_certificate_verifier(lenient(None)),
        };
        Ok(Tls(MakeRustlsConnect::new(config.with_no_client_auth())))
    }
}

impl TrustedRoots {
    fn read(&self) -> Result<RootCertStore, String> {
        let mut store = RootCertStore::empty();
        let source = match self {
            Self::System => {
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                "this machine has no root certificates: install them (Debian, Ubuntu: `apt-get install \
                 ca-certificates`), or name a file with sslrootcert"
                    .to_owned()
            }
            Self::File(path) => {
                store.add_parsable_certificates(certificates(path)?);
                format!("{} has no certificate: sslrootcert names a file in PEM format", path.display())
            }
        };
        if store.is_empty() { Err(source) } else { Ok(store) }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| format!("the sslrootcert file {} cannot be read: {error}", path.display()))
}

/// Explains an error of an encrypted connection, with advice; none for any other error.
pub(super) fn explain(error: &tokio_postgres::Error) -> Option<String> {
    let cause = error.source()?;
    // The driver has no error code for it.
    if let "server does not support TLS" = cause.to_string().as_str() {
        let advice = "turn `ssl` on in its postgresql.conf, or write sslmode=disable";
        return Some(format!("does not offer encrypted connections: {advice}"));
    }
    let tls: &TlsError = cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()?;
    let advice = match tls {
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "name the file of its root certificate with sslrootcert, or write sslmode=require to encrypt without knowing \
             who answers"
        }
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "write the host as its certificate does; sslmode=verify-ca with sslrootcert asks for no name",
        _ => "see to the server's certificate and its log",
    };
    Some(format!("cannot be reached safely ({tls}): {advice}"))
}

/// Does not ask for the host's name, nor for anything where it has no chain; but the peer has the key of its certificate.
#[derive(Debug)]
struct Lenient {
    algorithms: WebPkiSupportedAlgorithms,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(certificate, between, host, status, now) {
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_as_strict_as_it_says_whatever_its_password() {
        let read = |url: &str| split(url).map(|(rest, found)| (rest, found.mode, found.trust));
        let file = || PathBuf::from("/a b.pem");
        let system = || Trust::Named(TrustedRoots::System);
        for (url, rest, mode, trust) in [
            ("postgres://u:p@h/d", "postgres://u:p@h/d", None, Trust::Any),
            ("host=a sslmode=require", "host=a sslmode=require", None, Trust::Any),
            (
                "postgres://u:p?q&r@h/d?sslmode=require",
                "postgres://u:p?q&r@h/d",
                Some(SslMode::Require),
                Trust::Any,
            ),
            (
                "postgres://h/d?a=1&sslmode=disable&b=2",
                "postgres://h/d?a=1&b=2",
                Some(SslMode::Disable),
                Trust::Any,
            ),
            ("postgres://h/d?sslmode=verify-full", "postgres://h/d", Some(SslMode::Require), system()),
            ("postgres://h/d?sslrootcert=system", "postgres://h/d", Some(SslMode::Require), system()),
            (
                "postgres://h/d?sslrootcert=%2Fa%20b.pem&sslmode=require",
                "postgres://h/d",
                Some(SslMode::Require),
                Trust::Certified(file()),
            ),
            (
                "postgres://h/d?sslrootcert=/a%20b.pem",
                "postgres://h/d",
                Some(SslMode::Require),
                Trust::Named(TrustedRoots::File(file())),
            ),
        ] {
            assert_eq!(read(url), Ok((rest.to_owned(), mode, trust)), "{url}");
        }
        for (query, reason) in [
            ("sslmode=verify-ca", "any name"),
            ("sslmode=require&sslrootcert=system", "any name"),
            ("sslmode=prefer&sslrootcert=/x", "uses no sslrootcert"),
            ("sslmode=always", "is not known"),
        ] {
            let refused = read(&format!("postgres://h/d?{query}")).unwrap_err();
            assert!(refused.contains(reason), "{query}: {refused}");
        }
    }
}
