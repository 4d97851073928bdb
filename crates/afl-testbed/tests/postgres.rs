use std::net::{Ipv4Addr, TcpStream};

use afl_testbed::postgres::PostgresServer;

fn answers(server: &PostgresServer) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).is_ok()
}

#[test]
fn a_server_stops_and_resumes_on_request_and_leaves_nothing_behind() {
    let mut server = PostgresServer::start().unwrap();
    assert!(answers(&server));
    server.crash().unwrap();
    assert!(!answers(&server));
    server.resume().unwrap();
    assert!(answers(&server));
    server.stop().unwrap();
    assert!(!answers(&server));

    let directory = server.directory().to_owned();
    assert!(directory.exists());
    drop(server);
    assert!(!directory.exists());
}
