BEGIN TRANSACTION;
CREATE TABLE connection_sessions (
	connection_id VARCHAR(64) NOT NULL, 
	session_id VARCHAR(64) NOT NULL, 
	PRIMARY KEY (connection_id, session_id), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE TABLE connections (
	id VARCHAR(64) NOT NULL, 
	caller VARCHAR(64) NOT NULL, 
	introduction JSON NOT NULL, 
	touched_at DATETIME NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE job_runs (
	job_id VARCHAR(64) NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	PRIMARY KEY (job_id, run), 
	FOREIGN KEY(job_id) REFERENCES jobs (id)
);
CREATE TABLE job_tasks (
	job_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	"row" JSON NOT NULL, 
	PRIMARY KEY (job_id, position), 
	FOREIGN KEY(job_id) REFERENCES jobs (id)
);
CREATE TABLE jobs (
	id VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	"row" JSON NOT NULL, 
	planned BOOLEAN, 
	pruned JSON, 
	PRIMARY KEY (id)
);
CREATE TABLE logs (
	id INTEGER NOT NULL, 
	session_id VARCHAR(64) NOT NULL, 
	line INTEGER, 
	at DATETIME NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT logs_line UNIQUE (session_id, line), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE TABLE servers (
	id VARCHAR(64) NOT NULL, 
	machine VARCHAR(64) NOT NULL, 
	started_at DATETIME NOT NULL, 
	beat_at DATETIME NOT NULL, 
	beat_s FLOAT NOT NULL, 
	advertised VARCHAR(512), 
	tag VARCHAR(64), 
	is_draining BOOLEAN, 
	PRIMARY KEY (id)
);
CREATE TABLE sessions (
	id VARCHAR(64) NOT NULL, 
	secret_digest VARCHAR(64) NOT NULL, 
	job_id VARCHAR(64), 
	principal VARCHAR(512), 
	token_digest VARCHAR(64), 
	environment VARCHAR(64) NOT NULL, 
	environment_version VARCHAR(64) NOT NULL, 
	environment_digest VARCHAR(64), 
	task JSON NOT NULL, 
	context JSON NOT NULL, 
	seed BIGINT, 
	prompt TEXT, 
	reward_policy VARCHAR(16), 
	start_key VARCHAR(64), 
	attempt INTEGER, 
	record VARCHAR(16), 
	unflushed BOOLEAN, 
	live_token VARCHAR(64), 
	owner VARCHAR(64), 
	answered_at DATETIME, 
	released_at DATETIME, 
	was_stopped BOOLEAN, 
	overloaded INTEGER, 
	lost_gradings INTEGER, 
	failed_in_grading BOOLEAN, 
	died_in_grading BOOLEAN, 
	receipt JSON, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	pruned JSON, 
	pruned_steps INTEGER, 
	erased BOOLEAN, 
	stored_bytes BIGINT, 
	PRIMARY KEY (id), 
	CONSTRAINT sessions_secret UNIQUE (secret_digest), 
	CONSTRAINT sessions_live UNIQUE (live_token), 
	FOREIGN KEY(job_id) REFERENCES jobs (id)
);
INSERT INTO "sessions" VALUES('traj-639ba039c0fcfa05','3c9c1c91f380107d2c9bb27b9e1d461f3a279219db766880b8851dee27abfd3c',NULL,NULL,NULL,'CartPole-v1','1.4.0','b795fd23d6019508ff1f59942f42b68a51622619a517dde23319aae8699a31c3','{"id":"balance","env":"CartPole-v1","template":"balance","args":{},"context":{},"seed":null,"description":"Keep the pole upright for a number of steps","metadata":{},"validation":null,"prompt":null,"gym":null,"setup":[],"evaluate":[],"config":null,"target":null,"source":null}','{}',4152059251,'Keep the pole upright, and the cart on its track, for 200 steps. Your reward is the share of these 200 steps after which it still stood. Step with the action {"type": "custom", "action": "step", "args": {"action": 0}}, or "actions" with a list; an action is a whole number: 0 push left; 1 push right. There is one episode. When you are done, submit any answer.','per_step','e1c0459295d7964022efd4cf4ec086388ff971658ab85956c2ebcdce3c7ec6f1',1,'durable',0,'fcba9ab6797f07aef6d1f4e8029290ff',NULL,NULL,'2026-11-27 02:21:21.830079',1,NULL,NULL,NULL,NULL,NULL,'2026-11-27 02:21:20.494713',NULL,NULL,NULL,NULL,35562);
CREATE TABLE snapshots (
	session_id VARCHAR(64) NOT NULL, 
	step INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (session_id), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE TABLE steps (
	session_id VARCHAR(64) NOT NULL, 
	step INTEGER NOT NULL, 
	"row" JSON NOT NULL, 
	took_s FLOAT, 
	PRIMARY KEY (session_id, step), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
INSERT INTO "steps" VALUES('traj-639ba039c0fcfa05',0,'{"index":0,"kind":"step","look":{"image":"jpeg"},"delivered_image":true,"observation_text":"Step 0 of at most 500.\ncart position: -0.01877 m\ncart velocity, positive to the right: 0.02395 m/s\npole angle, positive to the right: -0.01402 rad\npole angular velocity: 0.02782 rad/s","screenshot":{"sha256":"e7864d19b3e22daa0931cac4f013879e5ba2a956cc15717894b34cefd91f3fe8","extension":"jpg","width_px":600,"height_px":400,"scale":1.0},"started_at":"2026-11-27T02:21:21.546582Z","ended_at":"2026-11-27T02:21:21.598923Z"}',0.052341);
INSERT INTO "steps" VALUES('traj-639ba039c0fcfa05',1,'{"index":1,"kind":"step","actions":[{"type":"custom","action":"step","args":{"action":1}}],"performed":1,"look":{"image":"jpeg"},"delivered_image":true,"observation_text":"Step 1 of at most 500.\ncart position: -0.01829 m\ncart velocity, positive to the right: 0.2193 m/s\npole angle, positive to the right: -0.01347 rad\npole angular velocity: -0.2692 rad/s","screenshot":{"sha256":"841e6291a171af8a7cf93dcafda8c0c92743a400b4066e9366b20c4f72f47243","extension":"jpg","width_px":600,"height_px":400,"scale":1.0},"reward":1.0,"info":{"first_step":1,"rewards":[1.0],"info":{}},"started_at":"2026-11-27T02:21:21.607175Z","ended_at":"2026-11-27T02:21:21.617927Z"}',0.010752);
INSERT INTO "steps" VALUES('traj-639ba039c0fcfa05',2,'{"index":2,"kind":"act","actions":[{"type":"custom","action":"step","args":{"action":0}}],"performed":1,"observation_text":"Step 2 of at most 500.\ncart position: -0.01391 m\ncart velocity, positive to the right: 0.02434 m/s\npole angle, positive to the right: -0.01885 rad\npole angular velocity: 0.01916 rad/s","screenshot":{"sha256":"7d66975d7ecf25c122b2a98e58ef4573a314e244836cc8ede036c378d5d957a3","extension":"jpg","width_px":600,"height_px":400,"scale":1.0},"reward":1.0,"info":{"first_step":2,"rewards":[1.0],"info":{}},"started_at":"2026-11-27T02:21:21.719599Z","ended_at":"2026-11-27T02:21:21.729870Z"}',0.010271);
INSERT INTO "steps" VALUES('traj-639ba039c0fcfa05',3,'{"index":3,"kind":"step","actions":[{"type":"custom","action":"step","args":{"action":1}},{"type":"custom","action":"step","args":{"action":0}}],"performed":2,"look":{"changes":true,"image":"jpeg"},"delivered_image":true,"observation_text":"Step 4 of at most 500.\ncart position: -0.009026 m\ncart velocity, positive to the right: 0.02487 m/s\npole angle, positive to the right: -0.02406 rad\npole angular velocity: 0.007386 rad/s","screenshot":{"sha256":"4f0f5998b366e4e1003d90a20a27832d395015c39995f9a1455c20946db8bf2c","extension":"jpg","width_px":600,"height_px":400,"scale":1.0},"reward":2.0,"info":{"first_step":3,"rewards":[1.0,1.0],"info":{}},"started_at":"2026-11-27T02:21:21.733776Z","ended_at":"2026-11-27T02:21:21.745630Z"}',0.011854);
INSERT INTO "steps" VALUES('traj-639ba039c0fcfa05',4,'{"index":4,"kind":"step","actions":[{"type":"custom","action":"step","args":{"action":1}}],"performed":1,"look":{"image":"jpeg"},"delivered_image":true,"observation_text":"Step 5 of at most 500.\ncart position: -0.008529 m\ncart velocity, positive to the right: 0.2203 m/s\npole angle, positive to the right: -0.02391 rad\npole angular velocity: -0.2928 rad/s","screenshot":{"sha256":"bd6194780ba40000be6cbdc4c690065b229c37aeeb820b19ab0b2c487304d181","extension":"jpg","width_px":600,"height_px":400,"scale":1.0},"reward":1.0,"info":{"first_step":5,"rewards":[1.0],"info":{}},"started_at":"2026-11-27T02:21:21.751659Z","ended_at":"2026-11-27T02:21:21.765877Z"}',0.014218);
CREATE TABLE turns (
	session_id VARCHAR(64) NOT NULL, 
	turn INTEGER NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	before_step INTEGER NOT NULL, 
	bytes BIGINT NOT NULL, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	cached_tokens BIGINT, 
	cost_usd FLOAT, 
	model_s FLOAT NOT NULL, 
	"row" JSON NOT NULL, 
	PRIMARY KEY (session_id, turn), 
	CONSTRAINT turns_digest UNIQUE (session_id, digest), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE TABLE versions (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "versions" VALUES(9);
CREATE INDEX connections_touched ON connections (touched_at);
CREATE INDEX jobs_created ON jobs (created_at);
CREATE INDEX sessions_job ON sessions (job_id, started_at, id);
CREATE INDEX sessions_start ON sessions (start_key, attempt);
CREATE INDEX sessions_ended ON sessions (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_principal ON sessions (principal, started_at, stored_bytes);
CREATE INDEX sessions_token ON sessions (token_digest, started_at) WHERE token_digest IS NOT NULL;
CREATE INDEX sessions_living ON sessions (principal, started_at) WHERE ended_at IS NULL;
CREATE INDEX sessions_started ON sessions (started_at, id);
CREATE INDEX sessions_going_on ON sessions (owner) WHERE ended_at IS NULL;
CREATE INDEX connection_sessions_session ON connection_sessions (session_id);
CREATE INDEX logs_session ON logs (session_id);
COMMIT;
