-- Wireshark dissector of NESP, the network emulator setting protocol, version 1 (crates/nesp/PROTOCOL.md).
-- wireshark -X lua_script:nesp.lua FILE

local nesp = Proto("nesp", "Network Emulator Setting Protocol")

local kinds = { [1] = "hello", [2] = "welcome", [3] = "request", [4] = "answer" }
local operations = { [1] = "get", [2] = "set", [3] = "list" }
local statuses = { [1] = "done", [2] = "refused", [3] = "partial" }
local objects = { [1] = "link", [2] = "source", [3] = "medium", [4] = "router", [5] = "forwarder",
  [6] = "flow", [7] = "port" }
local errors = {
  [1] = "unknown object", [2] = "bad value", [3] = "not permitted", [4] = "bad time",
  [5] = "too many", [6] = "unavailable", [7] = "bad request",
}

local f = {
  version = ProtoField.uint8("nesp.version", "Version"),
  kind = ProtoField.uint8("nesp.kind", "Kind", base.DEC, kinds),
  length = ProtoField.uint16("nesp.length", "Length"),
  session = ProtoField.uint64("nesp.session", "Session"),
  sequence = ProtoField.uint32("nesp.sequence", "Sequence"),
  nonce = ProtoField.bytes("nesp.nonce", "Nonce"),
  instance = ProtoField.bytes("nesp.instance", "Instance"),
  time = ProtoField.uint64("nesp.time", "Time (ns since the start of the run)"),
  group = ProtoField.uint32("nesp.group", "Group"),
  part = ProtoField.uint8("nesp.part", "Part"),
  parts = ProtoField.uint8("nesp.parts", "Parts"),
  operation = ProtoField.uint8("nesp.operation", "Operation", base.DEC, operations),
  status = ProtoField.uint8("nesp.status", "Status", base.DEC, statuses),
  object = ProtoField.string("nesp.object", "Object"),
  setting = ProtoField.string("nesp.setting", "Setting"),
  name = ProtoField.string("nesp.name", "Name"),
  error = ProtoField.string("nesp.error", "Error"),
  next = ProtoField.uint32("nesp.next", "Next"),
  authenticator = ProtoField.bytes("nesp.authenticator", "Authenticator (not checked)"),
}
nesp.fields = f

local malformed = ProtoExpert.new("nesp.malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR)
nesp.experts = { malformed }

-- One item: what it says, as text for the summary.
local function item(tree, number, whole, value)
  local length = value and value:len() or 0
  if number == 1 and length > 1 then
    local text = (objects[value(0, 1):uint()] or "?") .. " " .. value(1):string()
    tree:add(f.object, whole, text)
    return text
  elseif number == 2 and length > 1 and value(0, 1):uint() < length then
    local name = value(0, 1):uint()
    local text = value(1, name):string() .. "="
    if 1 + name < length then
      text = text .. value(1 + name):string()
    end
    tree:add(f.setting, whole, text)
    return text
  elseif number == 3 and length > 0 then
    tree:add(f.name, whole, value:string())
    return value:string()
  elseif number == 4 and length > 0 then
    local text = errors[value(0, 1):uint()] or "?"
    if length > 1 then
      text = text .. ": " .. value(1):string()
    end
    tree:add(f.error, whole, text)
    return text
  elseif number == 5 and length == 4 then
    tree:add(f.next, value)
    return nil
  end
  tree:add_proto_expert_info(malformed)
  return nil
end

local function items(tree, buffer, from, to)
  local texts = {}
  while from + 3 <= to do
    local length = buffer(from + 1, 2):uint()
    if from + 3 + length > to then
      tree:add_proto_expert_info(malformed)
      break
    end
    local value = length > 0 and buffer(from + 3, length) or nil
    texts[#texts + 1] = item(tree, buffer(from, 1):uint(), buffer(from, 3 + length), value)
    from = from + 3 + length
  end
  return table.concat(texts, " ")
end

local function body(tree, buffer, kind, to)
  if kind == 1 and to >= 36 then
    tree:add(f.nonce, buffer(20, 16))
  elseif kind == 2 and to >= 60 then
    tree:add(f.nonce, buffer(20, 16))
    tree:add(f.instance, buffer(36, 16))
    tree:add(f.time, buffer(52, 8))
  elseif kind == 3 and to >= 36 then
    tree:add(f.group, buffer(20, 4))
    tree:add(f.part, buffer(24, 1))
    tree:add(f.parts, buffer(25, 1))
    tree:add(f.operation, buffer(26, 1))
    tree:add(f.time, buffer(28, 8))
    return (operations[buffer(26, 1):uint()] or "?") .. " " .. items(tree, buffer, 36, to)
  elseif kind == 4 and to >= 32 then
    tree:add(f.status, buffer(20, 1))
    tree:add(f.time, buffer(24, 8))
    return (statuses[buffer(20, 1):uint()] or "?") .. " " .. items(tree, buffer, 32, to)
  else
    tree:add_proto_expert_info(malformed)
  end
  return ""
end

function nesp.dissector(buffer, pinfo, root)
  if buffer:len() < 36 or buffer(0, 4):string() ~= "NESP" then
    return 0
  end
  pinfo.cols.protocol = "NESP"
  local length = buffer(6, 2):uint()
  local whole = math.max(8, math.min(length, buffer:len()))
  local tree = root:add(nesp, buffer(0, whole))
  tree:add(f.version, buffer(4, 1))
  tree:add(f.kind, buffer(5, 1))
  tree:add(f.length, buffer(6, 2))
  if buffer(4, 1):uint() ~= 1 or length < 36 or length > buffer:len() then
    tree:add_proto_expert_info(malformed)
    return whole
  end
  tree:add(f.session, buffer(8, 8))
  tree:add(f.sequence, buffer(16, 4))
  local kind = buffer(5, 1):uint()
  local said = body(tree, buffer, kind, length - 16)
  tree:add(f.authenticator, buffer(length - 16, 16))
  pinfo.cols.info = (kinds[kind] or "?") .. " " .. said
  return length
end

DissectorTable.get("ethertype"):add(0x88b5, nesp)
DissectorTable.get("udp.port"):add(8805, nesp)
