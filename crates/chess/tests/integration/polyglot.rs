//! The example keys published with the Polyglot format.

use selfmate_chess::Game;
use selfmate_chess::notation::parse_move;
use selfmate_chess::polyglot::polyglot_key;

#[test]
fn keys_match_the_published_ones() {
    let known: [(&str, u64); 9] = [
        ("", 0x463b_9618_1691_fc9c),
        ("e2e4", 0x823c_9b50_fd11_4196),
        ("e2e4 d7d5", 0x0756_b944_61c5_0fb0),
        ("e2e4 d7d5 e4e5", 0x662f_afb9_65db_29d4),
        ("e2e4 d7d5 e4e5 f7f5", 0x22a4_8b5a_8e47_ff78),
        ("e2e4 d7d5 e4e5 f7f5 e1e2", 0x652a_607c_a3f2_42c1),
        ("e2e4 d7d5 e4e5 f7f5 e1e2 e8f7", 0x00fd_d303_c946_bdd9),
        ("a2a4 b7b5 h2h4 b5b4 c2c4", 0x3c81_23ea_7b06_7637),
        ("a2a4 b7b5 h2h4 b5b4 c2c4 b4c3 a1a3", 0x5c3f_9b82_9b27_9560),
    ];
    for (line, key) in known {
        let mut game = Game::new();
        for text in line.split_whitespace() {
            let m = parse_move(game.position(), text).unwrap();
            game.play(m).unwrap();
        }
        assert_eq!(polyglot_key(game.position()), key, "after '{line}'");
    }
}
