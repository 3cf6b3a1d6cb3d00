//! Measures the speed of the residual network: `cargo run --release -p selfmate-nn --example
//! residual_speed [small|toy|standard|large] [SECONDS]`.

use std::time::Duration;

use selfmate_chess::Seed;
use selfmate_nn::residual::{
    Config, Kernel, Network, Session, Trainer, TrainingConfig, Weights, bench,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let config = match arguments.next().as_deref() {
        Some("small") => Config::small(),
        None | Some("toy") => Config::toy(),
        Some("standard") => Config::standard(),
        Some("large") => Config::large(),
        Some(other) => {
            return Err(format!(
                "unknown network '{other}': expected small, toy, standard or large"
            )
            .into());
        }
    };
    let seconds = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let time = Duration::from_secs_f64(seconds);
    let weights = Weights::random(config, Seed::new(1))?;
    let positions = bench::positions(config, 256, Seed::new(1));
    println!("{config:?}: {} parameters", config.parameters());
    for kernel in Kernel::all().into_iter().rev() {
        let network = Network::with_kernel(&weights, kernel);
        for threads in [1, 2] {
            let mut session = Session::with_threads(&network, threads)?;
            for batch in [1, 8, 32, 128] {
                let speed = bench::inference(&mut session, &positions, batch, time);
                println!(
                    "inference {:8} threads {threads} batch {batch:3}  {speed:>8.0}/s",
                    kernel.name()
                );
            }
        }
    }
    let network = Network::quantised(&weights, positions.planes());
    for threads in [1, 2] {
        let mut session = Session::with_threads(&network, threads)?;
        for batch in [1, 8, 32, 128] {
            let speed = bench::inference(&mut session, &positions, batch, time);
            println!("inference int8     threads {threads} batch {batch:3}  {speed:>8.0}/s");
        }
    }
    for threads in [1, 2] {
        let mut trainer = Trainer::new(weights.clone(), TrainingConfig::default(), threads)?;
        let speed = bench::training(&mut trainer, &positions, 2 * time)?;
        println!("training  threads {threads} batch 256  {speed:>8.0}/s");
    }
    Ok(())
}
