//! Encrypted connections, to a server with a certificate for `localhost` that a root of our own signed.

use std::fs;
use std::path::PathBuf;

use afl_backends::postgres::Postgres;
use afl_testbed::postgres::PostgresServer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use crate::database::{client, read};
use crate::failures::{refused, says};

struct Safe {
    server: PostgresServer,
    folder: TempDir,
}

impl Safe {
    async fn start() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &root).unwrap();

        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("root.pem"), root.pem()).unwrap();
        let server = PostgresServer::start().unwrap();
        let client = client(&server.url()).await;
        // Written by the server, whose files they must be.
        for (file, pem) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
            let program = format!("umask 077; cat > {file}");
            let sql =
                format!("COPY (SELECT unnest(string_to_array('{pem}', E'\\n'))) TO PROGRAM '{program}'");
            client.batch_execute(&sql).await.unwrap();
        }
        client.batch_execute("ALTER SYSTEM SET ssl = on").await.unwrap();
        client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        while !has_tls(&server).await {}
        Self { server, folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    fn url(&self, host: &str, query: &str) -> String {
        format!("{}?{query}", self.server.url().replace("127.0.0.1", host))
    }

    /// Whether all connections of a store at this address are encrypted.
    async fn is_encrypted(&self, url: &str) -> bool {
        let store = Postgres::connect(url, 2).await.unwrap();
        assert!(read(&store, "a").await.is_none());
        let sql = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                   WHERE application_name = 'agentflow'";
        let row = client(&self.server.url()).await.query_one(sql, &[]).await.unwrap();
        drop(store);
        row.get(0)
    }
}

/// A new connection sees the settings that the server has read.
async fn has_tls(server: &PostgresServer) -> bool {
    let row = client(&server.url()).await.query_one("SELECT current_setting('ssl')", &[]).await.unwrap();
    row.get::<_, String>(0) == "on"
}

#[tokio::test]
async fn a_connection_is_as_safe_as_its_address_asks_for() {
    let safe = Safe::start().await;
    let root = format!("sslrootcert={}", safe.root().display());
    for (host, query) in [
        ("127.0.0.1", String::new()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-ca&{root}")),
        ("localhost", format!("sslmode=verify-full&{root}&connect_timeout=5")),
    ] {
        assert!(safe.is_encrypted(&safe.url(host, &query)).await, "{host} {query}");
    }
    assert!(!safe.is_encrypted(&safe.url("127.0.0.1", "sslmode=disable")).await);

    let other_name = safe.url("127.0.0.1", &format!("sslmode=verify-full&{root}"));
    says(&refused(&other_name).await, &["not valid for name", "write the host", "verify-ca"]);
    let unknown = safe.url("localhost", "sslmode=verify-full");
    says(&refused(&unknown).await, &["UnknownIssuer", "sslrootcert"]);
    let missing = safe.url("localhost", "sslmode=verify-full&sslrootcert=/no/such/file.pem");
    says(&refused(&missing).await, &["/no/such/file.pem", "cannot be read"]);
}

#[tokio::test]
async fn a_server_without_encryption_is_reported() {
    let url = format!("{}?sslmode=require", afl_testbed::postgres::shared_url());
    says(&refused(&url).await, &["does not offer encrypted connections", "sslmode=disable"]);
}
