//! The support itself: a suite that silently tested nothing would look like one that passes.

use super::browser::Person;
use super::database::{TestDb, on_every_engine};
use super::servers::{Engine, Server};

on_every_engine!(a_test_has_a_database_of_its_own);

async fn a_test_has_a_database_of_its_own(db: TestDb) {
    db.execute("CREATE TABLE mine (id BIGINT)").await.unwrap();
    db.execute("INSERT INTO mine (id) VALUES (1)").await.unwrap();
    let other = super::database::fresh_database(db.engine).await;
    other.execute("INSERT INTO mine (id) VALUES (2)").await.unwrap_err();
}

#[tokio::test]
async fn a_server_of_ones_own_can_be_taken_away() {
    for engine in [Engine::Postgres, Engine::Mariadb] {
        if !engine.is_chosen() {
            continue;
        }
        let mut server = Server::start(engine).unwrap();
        let open = || tokio::net::TcpStream::connect(("127.0.0.1", server.port));
        open().await.unwrap();
        server.stop();
        let open = || tokio::net::TcpStream::connect(("127.0.0.1", server.port));
        open().await.unwrap_err();
    }
}

#[tokio::test]
async fn a_browser_shows_what_its_person_has_set_up() {
    let page = "data:text/html,<html><body><script>document.write('scripted')</script></body>";
    let seen = |browser: super::browser::Browser| async move {
        let facts = browser
            .client
            .execute(
                "return [innerWidth, navigator.language, \
                 matchMedia('(prefers-color-scheme: dark)').matches, document.body.textContent]",
                Vec::new(),
            )
            .await
            .unwrap();
        browser.close().await;
        facts
    };
    let plain = Person::new().opens(page).await;
    plain.screenshot("selftest").await;
    assert_eq!(seen(plain).await.to_string(), r#"[1280,"en",false,"document.write('scripted')scripted"]"#);
    let other = Person::new().reads("zh-CN").on_a_phone().in_the_dark().without_script().opens(page).await;
    assert_eq!(seen(other).await.to_string(), r#"[360,"zh-CN",true,"document.write('scripted')"]"#);
}
