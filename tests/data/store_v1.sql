-- A store of version 1, as version 0.1.0 wrote it.
BEGIN TRANSACTION;
CREATE TABLE jobs (
	id VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	"row" JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "jobs" VALUES('job-000000000001','2026-03-01 09:30:00.250000','{"id": "job-000000000001", "name": "evening run", "taskset": "quickstart", "agent": "oracle", "metadata": {"note": "Gr\u00fc\u00dfe \ud83d\ude00", "group": 2}, "created_at": "2026-03-01T09:30:00.250000Z"}');
INSERT INTO "jobs" VALUES('job-000000000002','2026-03-01 10:30:00.250000','{"id": "job-000000000002", "name": "empty", "taskset": null, "agent": null, "metadata": {}, "created_at": "2026-03-01T10:30:00.250000Z"}');
CREATE TABLE logs (
	id INTEGER NOT NULL, 
	session_id VARCHAR(64) NOT NULL, 
	at DATETIME NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
INSERT INTO "logs" VALUES(1,'traj-graded','2026-03-01 09:30:00.250000','began');
INSERT INTO "logs" VALUES(2,'traj-graded','2026-03-01 09:30:05.250000','prints é');
INSERT INTO "logs" VALUES(3,'traj-lost','2026-03-01 09:30:01.250000','began');
INSERT INTO "logs" VALUES(4,'traj-lost','2026-03-01 09:30:06.250000','prints é');
INSERT INTO "logs" VALUES(5,'traj-open','2026-03-01 09:30:02.250000','began');
INSERT INTO "logs" VALUES(6,'traj-open','2026-03-01 09:30:07.250000','prints é');
INSERT INTO "logs" VALUES(7,'traj-alone','2026-03-01 09:30:03.250000','began');
INSERT INTO "logs" VALUES(8,'traj-alone','2026-03-01 09:30:08.250000','prints é');
CREATE TABLE sessions (
	id VARCHAR(64) NOT NULL, 
	secret_digest VARCHAR(64) NOT NULL, 
	job_id VARCHAR(64), 
	principal VARCHAR(512), 
	environment VARCHAR(64) NOT NULL, 
	environment_version VARCHAR(64) NOT NULL, 
	task JSON NOT NULL, 
	context JSON NOT NULL, 
	seed INTEGER, 
	prompt TEXT, 
	receipt JSON, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	PRIMARY KEY (id), 
	CONSTRAINT sessions_secret UNIQUE (secret_digest), 
	FOREIGN KEY(job_id) REFERENCES jobs (id)
);
INSERT INTO "sessions" VALUES('traj-graded','0000000000000000000000000000000000000000000000000000000000000000','job-000000000001',NULL,'shop','1.2.3','{"id": "buy", "env": "shop", "template": "buy", "args": {"item": "lamp", "n": 2}, "context": {"dark": true}, "seed": 7, "description": "Buy it.", "metadata": {"source": "hand", "answer": "42"}, "validation": null}','{"dark": true, "speed": 1.5}',7,'Buy a lamp (traj-graded).
Then say “done”.','{"trajectory": "traj-graded", "environment": "shop", "task": "buy", "template": "buy", "outcome": "graded", "reward": 0.5, "subscores": [{"name": "found", "value": 1.0, "weight": 1.0, "children": [], "info": {}}, {"name": "paid", "value": 0.0, "weight": 1.0, "children": [], "info": {}}], "content": "half of it", "info": {"a": [1, null, {"b": "\u0000x"}]}, "answer_digest": "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd", "error": null, "started_at": "2026-03-01T09:30:00.250000Z", "ended_at": "2026-03-01T09:30:40.250000Z", "reward_policy": "on_submit", "package_version": "0.1.0", "task_digest": "226e9658d9ce7114252620bb74e602747ead90f43d93d886d5e2414258d350ba", "environment_digest": "abababababababababababababababababababababababababababababababab"}','2026-03-01 09:30:00.250000','2026-03-01 09:30:40.250000');
INSERT INTO "sessions" VALUES('traj-lost','1111111111111111111111111111111111111111111111111111111111111111','job-000000000001','alice','shop','1.2.3','{"id": "buy", "env": "shop", "template": "buy", "args": {"item": "lamp", "n": 2}, "context": {"dark": true}, "seed": 7, "description": "Buy it.", "metadata": {"source": "hand", "answer": "42"}, "validation": null}','{"dark": true, "speed": 1.5}',-9223372036854775808,'Buy a lamp (traj-lost).
Then say “done”.','{"trajectory": "traj-lost", "environment": "shop", "task": "buy", "template": "buy", "outcome": "lost", "reward": null, "subscores": [], "content": null, "info": {"a": [1, null, {"b": "\u0000x"}]}, "answer_digest": null, "error": "its server ended", "started_at": "2026-03-01T09:30:00.250000Z", "ended_at": "2026-03-01T09:31:00.250000Z", "reward_policy": "on_submit", "package_version": "0.1.0", "task_digest": "226e9658d9ce7114252620bb74e602747ead90f43d93d886d5e2414258d350ba", "environment_digest": "abababababababababababababababababababababababababababababababab"}','2026-03-01 09:30:01.250000','2026-03-01 09:31:00.250000');
INSERT INTO "sessions" VALUES('traj-open','2222222222222222222222222222222222222222222222222222222222222222','job-000000000001','alice','shop','1.2.3','{"id": "buy", "env": "shop", "template": "buy", "args": {"item": "lamp", "n": 2}, "context": {"dark": true}, "seed": 7, "description": "Buy it.", "metadata": {"source": "hand", "answer": "42"}, "validation": null}','{"dark": true, "speed": 1.5}',9223372036854775807,'Buy a lamp (traj-open).
Then say “done”.',NULL,'2026-03-01 09:30:02.250000',NULL);
INSERT INTO "sessions" VALUES('traj-alone','3333333333333333333333333333333333333333333333333333333333333333',NULL,'alice','shop','1.2.3','{"id": "buy", "env": "shop", "template": "buy", "args": {"item": "lamp", "n": 2}, "context": {"dark": true}, "seed": 7, "description": "Buy it.", "metadata": {"source": "hand", "answer": "42"}, "validation": null}','{"dark": true, "speed": 1.5}',NULL,NULL,NULL,'2026-03-01 09:30:03.250000',NULL);
CREATE TABLE steps (
	session_id VARCHAR(64) NOT NULL, 
	step INTEGER NOT NULL, 
	"row" JSON NOT NULL, 
	PRIMARY KEY (session_id, step), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
INSERT INTO "steps" VALUES('traj-graded',0,'{"index": 0, "kind": "screenshot", "observation_text": "page 0 \u2028 \u0000", "screenshot": {"sha256": "c96f7bb0e658eb27f0fcd09ffe5ff1d27e92b749a46a1c62f22892fdd388ff44", "extension": "png", "width_px": 24, "height_px": 16, "scale": 1.5}, "info": {"k": 0}, "started_at": "2026-03-01T09:30:00.250000Z", "ended_at": "2026-03-01T09:30:00.550000Z"}');
INSERT INTO "steps" VALUES('traj-graded',1,'{"index": 1, "kind": "step", "actions": [{"type": "click", "ref": "e1"}], "performed": 1, "observation_text": "page 1 \u2028 \u0000", "screenshot": {"sha256": "78a96b9fb97057057671f92f827d347a24c95bad1386b5e92b975641e7e1087e", "extension": "png", "width_px": 24, "height_px": 16, "scale": 1.5}, "info": {"k": 1}, "error": "it was covered", "started_at": "2026-03-01T09:30:01.250000Z", "ended_at": "2026-03-01T09:30:01.550000Z"}');
INSERT INTO "steps" VALUES('traj-graded',2,'{"index": 2, "kind": "step", "actions": [{"type": "click", "ref": "e2"}], "performed": 1, "observation_text": "page 2 \u2028 \u0000", "reward": 0.25, "info": {"k": 2}, "started_at": "2026-03-01T09:30:02.250000Z", "ended_at": "2026-03-01T09:30:02.550000Z"}');
INSERT INTO "steps" VALUES('traj-lost',0,'{"index": 0, "kind": "screenshot", "observation_text": "page 0 \u2028 \u0000", "screenshot": {"sha256": "c96f7bb0e658eb27f0fcd09ffe5ff1d27e92b749a46a1c62f22892fdd388ff44", "extension": "png", "width_px": 24, "height_px": 16, "scale": 1.5}, "info": {"k": 0}, "started_at": "2026-03-01T09:30:01.250000Z", "ended_at": "2026-03-01T09:30:01.550000Z"}');
INSERT INTO "steps" VALUES('traj-lost',1,'{"index": 1, "kind": "step", "actions": [{"type": "click", "ref": "e1"}], "performed": 1, "observation_text": "page 1 \u2028 \u0000", "screenshot": {"sha256": "78a96b9fb97057057671f92f827d347a24c95bad1386b5e92b975641e7e1087e", "extension": "png", "width_px": 24, "height_px": 16, "scale": 1.5}, "info": {"k": 1}, "error": "it was covered", "started_at": "2026-03-01T09:30:02.250000Z", "ended_at": "2026-03-01T09:30:02.550000Z"}');
INSERT INTO "steps" VALUES('traj-lost',2,'{"index": 2, "kind": "step", "actions": [{"type": "click", "ref": "e2"}], "performed": 1, "observation_text": "page 2 \u2028 \u0000", "reward": 0.25, "info": {"k": 2}, "started_at": "2026-03-01T09:30:03.250000Z", "ended_at": "2026-03-01T09:30:03.550000Z"}');
INSERT INTO "steps" VALUES('traj-open',0,'{"index": 0, "kind": "screenshot", "observation_text": "page 0 \u2028 \u0000", "screenshot": {"sha256": "c96f7bb0e658eb27f0fcd09ffe5ff1d27e92b749a46a1c62f22892fdd388ff44", "extension": "png", "width_px": 24, "height_px": 16, "scale": 1.5}, "info": {"k": 0}, "started_at": "2026-03-01T09:30:02.250000Z", "ended_at": "2026-03-01T09:30:02.550000Z"}');
INSERT INTO "steps" VALUES('traj-open',1,'{"index": 1, "kind": "step", "actions": [{"type": "click", "ref": "e1"}], "performed": 1, "observation_text": "page 1 \u2028 \u0000", "screenshot": {"sha256": "78a96b9fb97057057671f92f827d347a24c95bad1386b5e92b975641e7e1087e", "extension": "png", "width_px": 24, "height_px": 16, "scale": 1.5}, "info": {"k": 1}, "error": "it was covered", "started_at": "2026-03-01T09:30:03.250000Z", "ended_at": "2026-03-01T09:30:03.550000Z"}');
INSERT INTO "steps" VALUES('traj-open',2,'{"index": 2, "kind": "step", "actions": [{"type": "click", "ref": "e2"}], "performed": 1, "observation_text": "page 2 \u2028 \u0000", "reward": 0.25, "info": {"k": 2}, "started_at": "2026-03-01T09:30:04.250000Z", "ended_at": "2026-03-01T09:30:04.550000Z"}');
CREATE TABLE versions (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "versions" VALUES(1);
CREATE INDEX sessions_job ON sessions (job_id);
CREATE INDEX logs_session ON logs (session_id);
COMMIT;
